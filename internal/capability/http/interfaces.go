package http

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// lookEvery is how long a list of the interfaces is used. Getting it from the kernel takes from 50 µs to some milliseconds, depending on the number
// of addresses.
const lookEvery = time.Second

// interfaces has the addresses of a network's interfaces, as of the last look. It is safe for concurrent use.
type interfaces struct {
	network Network
	last    atomic.Pointer[look]
}

type look struct {
	at    time.Time
	found []netip.Prefix
	err   error
}

func (i *interfaces) addresses() ([]netip.Prefix, error) {
	if l := i.last.Load(); l != nil && time.Since(l.at) < lookEvery {
		return l.found, l.err
	}
	l := &look{at: time.Now()}
	l.found, l.err = i.network.Interfaces()
	i.last.Store(l)
	return l.found, l.err
}

func (system) Interfaces() ([]netip.Prefix, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var found []netip.Prefix
	for _, one := range list {
		var ip net.IP
		ones, size := 0, 0
		switch one := one.(type) {
		case *net.IPNet:
			ip = one.IP
			ones, size = one.Mask.Size()
		case *net.IPAddr: // anycast, in Windows
			ip = one.IP
		}
		a, ok := netip.AddrFromSlice(ip)
		if a = a.Unmap(); !ok {
			continue
		}
		if ones += a.BitLen() - size; size == 0 || ones < 0 {
			ones = a.BitLen()
		}
		found = append(found, netip.PrefixFrom(a, ones))
	}
	return found, nil
}
