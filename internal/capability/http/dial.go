package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// A Network looks up names and dials addresses. It must be comparable and safe for concurrent use. Tests have their own.
type Network interface {
	// Lookup returns all addresses of a name, which ends in a dot.
	Lookup(ctx context.Context, name string) ([]netip.Addr, error)
	// Interfaces returns the addresses of the machine's interfaces, each with the prefix of its network. An IPv4 address must not be in IPv6 form.
	Interfaces() ([]netip.Prefix, error)
	// Dial connects to an address over TCP.
	Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

// system is the network of the host. It asks name servers itself: the C library would hold a thread for each name that it waits for.
type system struct{}

func (system) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	// The hosts file has names such as localhost without the final dot. Name servers would be asked for these with the search domains, so only the
	// file is used.
	if bare := strings.TrimSuffix(name, "."); !strings.Contains(bare, ".") {
		file := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errFileOnly }}
		if found, err := file.LookupNetIP(ctx, "ip", bare); err == nil {
			return found, nil
		}
	}
	resolver := net.Resolver{PreferGo: true}
	return resolver.LookupNetIP(ctx, "ip", name)
}

// errFileOnly keeps the resolver from asking name servers when only the hosts file may be used.
var errFileOnly = errors.New("no name servers are asked")

func (system) Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address.String())
}

const (
	connectTimeout = 10 * time.Second // bounds connecting to all addresses of a host; the handshake may take as long again
	maxAddresses   = 100              // how many addresses a name may have
	maxDialled     = 8                // how many of these are dialled
	maxHeadBytes   = 64 << 10         // bytes of the head of an answer, including all 1xx answers before it
)

// newDialer returns the dialer for a rule. It uses no proxy, whatever the environment says.
func newDialer(o Options, roots *x509.CertPool, private []netip.Prefix) *dialer {
	network := o.Network
	if network == nil {
		network = system{}
	}
	return &dialer{network: network, interfaces: interfaces{network: network}, roots: roots, private: private, connections: o.Connections}
}

// A dialer connects to the addresses of hosts, if these may be reached. Its errors are *answer.Failure. It is safe for concurrent use.
type dialer struct {
	network    Network
	interfaces interfaces
	roots      *x509.CertPool
	private    []netip.Prefix

	connections *Connections
}

// connect makes a connection to an origin, for requests by r. It speaks only HTTP/1.1, in which a connection is for one origin: with HTTP/2, a server
// could get requests for all names in its certificate.
func (d *dialer) connect(ctx context.Context, r *rule, o reach.Origin) (*line, error) {
	conn, f := d.dial(ctx, o)
	if f != nil {
		return nil, f
	}
	if o.Scheme != "https" {
		return newLine(r, o, conn), nil
	}
	secure := tls.Client(conn, &tls.Config{ServerName: o.Host, RootCAs: d.roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	handshake, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := secure.HandshakeContext(handshake); err != nil {
		_ = conn.Close()
		return nil, tlsFailure(o.Host, err)
	}
	return newLine(r, o, secure), nil
}

func (d *dialer) dial(ctx context.Context, o reach.Origin) (net.Conn, *answer.Failure) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	addresses, f := d.lookup(ctx, o.Host)
	if f != nil {
		return nil, f
	}
	if f := d.connections.take(); f != nil {
		return nil, f
	}
	deadline, _ := ctx.Deadline()
	var err error
	for i, a := range addresses {
		left := time.Until(deadline) / time.Duration(len(addresses)-i)
		try, cancel := context.WithTimeout(ctx, left)
		conn, dialErr := d.network.Dial(try, netip.AddrPortFrom(a, o.Port))
		cancel()
		if err = dialErr; err == nil {
			return d.connections.counted(conn), nil
		}
	}
	d.connections.give()
	return nil, answer.Failf(codeConnect, "%s refuses connections on port %d: %s.", o.Host, o.Port, dialReason(err))
}

// lookup returns the addresses of a host, which are dialled without another lookup. It fails if any of them must not be reached, so that a name
// server can't mix allowed and forbidden addresses.
func (d *dialer) lookup(ctx context.Context, host string) ([]netip.Addr, *answer.Failure) {
	if a, err := netip.ParseAddr(host); err == nil {
		if f := d.check(host, a); f != nil {
			return nil, f
		}
		return []netip.Addr{a}, nil
	}
	found, err := d.network.Lookup(ctx, host+".") // the dot keeps the system from trying search domains
	var none *net.DNSError
	switch {
	case err == nil && len(found) > maxAddresses:
		return nil, answer.Failf(codeDNS, "%s has %d addresses; the limit is %d.", host, len(found), maxAddresses)
	case err == nil && len(found) > 0:
	case ctx.Err() != nil:
		return nil, answer.Failf(codeDNS, "The address of %s was not found in time.", host)
	case err == nil || errors.As(err, &none) && none.IsNotFound:
		return nil, answer.Failf(codeDNS, "%s has no address.", host)
	default:
		return nil, answer.Failf(codeDNS, "The address of %s could not be looked up: no name server answered.", host)
	}
	for i, a := range found {
		found[i] = a.Unmap()
		if f := d.check(host, found[i]); f != nil {
			return nil, f
		}
	}
	return found[:min(len(found), maxDialled)], nil
}

// check refuses an address that is special or near, unless it is granted. The message has the special range rather than the address: a tool that
// may ask for any name of a domain must not learn its addresses, nor those of the machine.
func (d *dialer) check(host string, a netip.Addr) *answer.Failure {
	if a.Zone() == "" && slices.ContainsFunc(d.private, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return nil
	}
	if kind, within, special := reach.Special(a); special {
		return answer.Failf(answer.NotGranted, "The address of %s is %s (%s), not on the public internet. To grant it, name the range in private, as in private = [%q].", host, kind, within, within)
	}
	known, err := d.interfaces.addresses()
	if err != nil {
		return answer.Failf(answer.Unavailable, "%s can't be reached: the server can't find out its own machine's addresses, so it refuses every address that private does not name.", host)
	}
	if kind, near := reach.Near(a, known); near {
		return answer.Failf(answer.NotGranted, "%s is at an address %s. To grant it, name the address in private.", host, kind)
	}
	return nil
}

// dialReason says why a connection was not made, without an address.
func dialReason(err error) string {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses them"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &late) && late.Timeout():
		return "there was no answer in time"
	default:
		return "it can't be reached"
	}
}

// tlsFailure says why a handshake failed, without quoting the server's certificate.
func tlsFailure(host string, err error) *answer.Failure {
	reason := "the handshake failed; TLS 1.2 or later is needed"
	var (
		unknown x509.UnknownAuthorityError
		names   x509.HostnameError
		invalid x509.CertificateInvalidError
		late    interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &unknown):
		reason = "its certificate is from an authority that is not trusted; the operator can name it in the grant, with ca"
	case errors.As(err, &names):
		reason = "its certificate is for other names"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		reason = "its certificate has expired, or is not valid yet"
	case errors.As(err, &invalid):
		reason = "its certificate is not valid"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &late) && late.Timeout():
		reason = "the handshake took too long"
	}
	return answer.Failf(codeTLS, "%s can't be trusted: %s.", host, reason)
}
