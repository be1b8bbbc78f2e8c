package oci

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/reach"
)

// A Network looks up names and dials addresses. It must be safe for concurrent use. Tests have their own.
type Network interface {
	// Lookup returns all addresses of a name.
	Lookup(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address over TCP.
	Dial(ctx context.Context, address string) (net.Conn, error)
	// Interfaces returns the addresses of the machine's interfaces, each with the prefix of its network.
	Interfaces() ([]netip.Prefix, error)
	// Proxy returns the proxy for a request, or nil.
	Proxy(q *http.Request) (*url.URL, error)
}

// system is the network of the host.
type system struct{}

func (system) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

func (system) Dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func (system) Interfaces() (all []netip.Prefix, err error) {
	addresses, err := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				bits, _ := n.Mask.Size()
				all = append(all, netip.PrefixFrom(ip.Unmap(), bits))
			}
		}
	}
	return all, err
}

func (system) Proxy(q *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(q) }

// A dialer connects to a registry, wherever that is. It follows the registry's redirects only to the public internet, or to a network of the
// registry's own kind. So a registry on the internet can't reach services on the machine or in its network.
type dialer struct {
	network Network
	own     string // the registry's name, without a port

	mu      sync.Mutex
	kinds   map[string]bool // kinds of the registry's own addresses
	proxies map[string]bool // hosts with ports
}

func newDialer(host string, network Network) *dialer {
	if network == nil {
		network = system{}
	}
	return &dialer{network: network, own: nameOf(host), kinds: map[string]bool{}, proxies: map[string]bool{}}
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(name)
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// proxy returns the proxy for a request. The proxy may be anywhere, and decides where requests go.
func (d *dialer) proxy(q *http.Request) (*url.URL, error) {
	u, err := d.network.Proxy(q)
	if err != nil || u == nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proxies[net.JoinHostPort(u.Hostname(), port)] = true
	return u, nil
}

// dial connects to a host.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := d.check(host, address, found); err != nil {
		return nil, err
	}
	var failed error
	for _, a := range found {
		conn, err := d.network.Dial(ctx, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, failed
}

// lookup returns the first addresses of a host.
func (d *dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := d.network.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return found[:min(len(found), 8)], nil
}

// check refuses addresses to which the registry must not lead.
func (d *dialer) check(host, address string, found []netip.Addr) error {
	near, err := d.network.Interfaces()
	if err != nil {
		return fmt.Errorf("find out the machine's addresses: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	own := strings.EqualFold(host, d.own)
	if !own && d.proxies[address] {
		return nil
	}
	for _, a := range found {
		kind, _, special := reach.Special(a)
		if !special {
			kind, special = reach.Near(a, near)
		}
		if !special {
			continue
		}
		if own {
			d.kinds[kind] = true
		} else if !d.kinds[kind] {
			return &forbiddenError{fmt.Errorf("the registry leads to %s, whose address is %s: a registry on another kind of network must not lead there", host, kind)}
		}
	}
	return nil
}
