package server

import (
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// access returns which hosts and origins a configuration allows on the addresses that the server listens on. Those of the public
// address are among them, as the server was started with it.
func (s *Server) access(c *config.Config) (*web.Access, error) {
	o := web.AccessOptions{Hosts: c.Server.Hosts, Origins: c.Server.CORSOrigins, Loopback: !slices.ContainsFunc(s.listeners, isOpen),
		Proxies: c.Server.TrustedProxies, ProxyHeader: c.Server.ProxyHeader}
	if public, err := url.Parse(s.started.Server.PublicURL); err == nil && public.Host != "" {
		if o.Loopback || len(o.Hosts) > 0 {
			o.Hosts = append(slices.Clone(o.Hosts), public.Hostname())
		}
		o.Origins = append(slices.Clone(o.Origins), public.Scheme+"://"+public.Host)
	}
	a, err := web.NewAccess(o)
	if err != nil {
		return nil, fmt.Errorf("apply server.hosts and server.cors_origins: %w", err)
	}
	return a, nil
}

// isOpen reports whether clients on other machines may reach a listener.
func isOpen(l net.Listener) bool {
	if l.Addr().Network() == "unix" {
		return false
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}

// isOpenToPages reports whether a page of any origin may make requests.
func isOpenToPages(c *config.Config) bool { return slices.Contains(c.Server.CORSOrigins, "*") }
