// Package session speaks the Model Context Protocol with clients that keep a session: those of the versions before
// 2026-07-28 over HTTP, which begin with initialize, and those of all versions over standard input and output.
//
// [Sessions] are those of HTTP, and [Stdio] is the whole of a session over two pipes. Both read and write messages
// themselves and answer tools/list, tools/call and subscriptions/listen from a [toolset.Set]; go-sdk negotiates versions,
// says what the server can do, and refuses what a client may not ask for yet.
package session

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
)

// modernVersion is the first version that needs no initialize.
const modernVersion = "2026-07-28"

// The versions that are spoken, the newest first.
var (
	legacyVersions = []string{"2025-11-25", "2025-06-18"}
	allVersions    = append([]string{modernVersion}, legacyVersions...)
)

// A protocol is what all conversations of one transport share: go-sdk's server.
type protocol struct {
	set      *toolset.Set
	server   *sdk.Server
	identity string           // a member of each modern result's _meta
	listen   func(r *request) // answers subscriptions/listen; nil: the transport has none
	settled  func() bool      // nil: the set has every tool that there is
	ready    <-chan struct{}  // closed when it has; nil: calls do not wait for that
}

func newProtocol(set *toolset.Set, versions []string) *protocol {
	p := &protocol{set: set}
	info := set.Info()
	p.server = sdk.NewServer(&sdk.Implementation{Name: info.Name, Title: info.Title, Version: info.Version}, &sdk.ServerOptions{
		Instructions:              info.Instructions,
		Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
		SupportedProtocolVersions: versions,
		SetCacheable: func(_ context.Context, req sdk.Request, c *sdk.Cacheable) {
			if r := requestOf(req); r != nil {
				c.TTLMs, c.CacheScope = rpc.FreshDiscover, r.scope()
			}
		},
	})
	p.identity = rpc.Identity(info.Name, info.Title, info.Version)
	p.server.AddReceivingMiddleware(p.receive)
	return p
}
