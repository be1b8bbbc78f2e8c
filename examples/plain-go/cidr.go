// Command plain-go describes a network of IP addresses. It is a plain WASI program, which knows nothing of the server that
// runs it. It reads JSON from standard input and writes JSON to standard output. If it fails, it writes a sentence to standard
// error and ends with exit code 1.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"os"
	"strings"
)

type query struct {
	Network  string   `json:"network"`
	Contains []string `json:"contains"`
	Split    *int     `json:"split"`
}

type answer struct {
	Network   string         `json:"network"`
	Version   int            `json:"version"`
	Prefix    int            `json:"prefix"`
	Netmask   string         `json:"netmask,omitempty"`
	First     string         `json:"first"`
	Last      string         `json:"last"`
	Addresses string         `json:"addresses"`
	Hosts     string         `json:"hosts"`
	Private   bool           `json:"private"`
	Contains  []membership   `json:"contains"`
	Split     []netip.Prefix `json:"split"`
}

type membership struct {
	Address string `json:"address"`
	Inside  bool   `json:"inside"`
}

// maxSplit is the largest number of networks that one is split into.
const maxSplit = 1024

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var q query
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("the arguments are not as expected: %w", err)
	}
	a, err := look(q)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

func look(q query) (*answer, error) {
	prefix, err := parse(q.Network)
	if err != nil {
		return nil, err
	}
	network := prefix.Masked()
	first := network.Addr()
	last := end(network)
	bits := first.BitLen() - network.Bits()
	count := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	a := &answer{
		Network: network.String(), Version: 6, Prefix: network.Bits(), First: first.String(), Last: last.String(), Addresses: count.String(),
		Hosts: count.String(), Private: first.IsPrivate() && last.IsPrivate(), Contains: []membership{}, Split: []netip.Prefix{},
	}
	if first.Is4() {
		a.Version = 4
		mask := ^uint32(0) << bits // bits is 32 at most, and a shift by 32 gives 0
		a.Netmask = netip.AddrFrom4([4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}).String()
		if bits > 1 { // the first address names the network, and the last one is for broadcasts
			a.Hosts = new(big.Int).Sub(count, big.NewInt(2)).String()
		}
	}
	for i, text := range q.Contains {
		address, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("contains[%d]: %.60q is not a valid IP address: write it as 10.1.2.3 or 2001:db8::1", i, text)
		}
		a.Contains = append(a.Contains, membership{text, network.Contains(address.Unmap().WithZone(""))})
	}
	if q.Split != nil {
		a.Split, err = split(network, *q.Split)
	}
	return a, err
}

// parse reads a network: with a prefix length, with a netmask, or a single address.
func parse(text string) (netip.Prefix, error) {
	text = strings.TrimSpace(text)
	address, length, _ := strings.Cut(strings.Join(strings.Fields(text), "/"), "/")
	if mask, err := netip.ParseAddr(length); err == nil && mask.Is4() {
		b := mask.As4()
		n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		ones := 0
		for ; ones < 32 && n&(1<<31) != 0; ones++ {
			n <<= 1
		}
		if n != 0 {
			return netip.Prefix{}, fmt.Errorf("%s is not a valid netmask: its ones must come before its zeros, as in 255.255.255.0", length)
		}
		text = fmt.Sprintf("%s/%d", address, ones)
	}
	prefix, err := netip.ParsePrefix(text)
	if err == nil {
		return prefix, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.Prefix{}, fmt.Errorf("%.60q is not a valid network: write it as 10.0.0.0/8, 10.0.0.0 255.0.0.0 or 2001:db8::/32", text)
}

// end returns the last address of a network.
func end(network netip.Prefix) netip.Addr {
	b := network.Addr().AsSlice()
	for i := network.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// split divides a network into networks with a longer prefix.
func split(network netip.Prefix, length int) ([]netip.Prefix, error) {
	more := length - network.Bits()
	switch {
	case length > network.Addr().BitLen():
		return nil, fmt.Errorf("split: /%d is longer than an address has bits: %d are the most", length, network.Addr().BitLen())
	case more < 0:
		return nil, fmt.Errorf("split: /%d is larger than the network %s: pass more than %d", length, network, network.Bits()-1)
	case more > 10:
		return nil, fmt.Errorf("split: %s has more than %d networks of /%d: split in several steps", network, maxSplit, length)
	}
	out := make([]netip.Prefix, 0, 1<<more)
	at := network.Addr()
	for range 1 << more {
		part := netip.PrefixFrom(at, length)
		out = append(out, part)
		at = end(part).Next()
	}
	return out, nil
}
