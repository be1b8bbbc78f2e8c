package openapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/follow"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// DoorOptions are the settings of a Door. They mean the same as in [Options]. The zero value is usable.
type DoorOptions struct {
	Title, Version, Description string
	Servers                     []string
	Invoker                     *invoker.Invoker
	Logger                      *slog.Logger // gets errors in the descriptions of tools
}

// A Door serves the tools of a route table over REST, and describes them.
type Door struct {
	mux                         *web.Mux
	title, version, description string
	servers                     []documentServer

	log         *slog.Logger
	invoker     *invoker.Invoker
	unsubscribe func()
	idle        sync.Pool // of *exchange

	made     *follow.Derived[derived]
	mu       sync.Mutex // taken after the locks of the route table and of dependencies
	newest   *derived   // the derived of the newest generation; guarded by mu
	unrouted bool       // new tools could not be routed; guarded by mu
}

var _ web.Door = (*Door)(nil)

// NewDoor returns a door for a table, which it follows until Close. Mount it on mux at "/". Its document has the security schemes of mux. NewDoor
// panics if mux or table is nil.
func NewDoor(mux *web.Mux, table *wasmtools.RouteTable, o DoorOptions) *Door {
	if mux == nil || table == nil {
		panic("openapi.NewDoor: mux or table is nil")
	}
	if o.Invoker == nil {
		o.Invoker = invoker.New(invoker.Options{})
	}
	d := &Door{
		mux:         mux,
		title:       cmp.Or(o.Title, "Tools"),
		version:     cmp.Or(o.Version, "0.1.0"),
		description: o.Description,
		log:         cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		invoker:     o.Invoker,
	}
	for _, address := range o.Servers {
		// Clients append a path, which begins with a slash.
		d.servers = append(d.servers, documentServer{URL: cmp.Or(strings.TrimRight(address, "/"), "/")})
	}
	d.made = follow.Derive(table, d.make)
	d.unsubscribe = mux.SubscribeSecurity(d.secure)
	d.secure() // applies what has changed in between
	return d
}

// Close ends the subscriptions to the table and to the dependencies. The door continues to serve the tools that it has then.
// Close returns nil and can be called twice.
func (d *Door) Close() error {
	d.made.Close()
	d.unsubscribe()
	return nil
}

// Policy lets pages of other origins link to the lists, which can only be read. It does not let such pages call tools.
func (d *Door) Policy() web.Policy { return web.Policy{Pages: web.PagesRead, Unbounded: true} }

// Serve answers one request.
func (d *Door) Serve(x *web.Exchange) {
	e, ok := d.idle.Get().(*exchange)
	if !ok {
		e = new(exchange)
	}
	e.Exchange, e.derived = x, d.made.Of(x.Generation())
	e.derived.router.ServeHTTP(e, x.Request())
	*e = exchange{} // not deferred: after a panic, something may still hold the exchange
	d.idle.Put(e)
}

// An exchange is a request to a Door, with the derived of its generation. The router passes it to handlers as their ResponseWriter, so that they have
// all they need.
type exchange struct {
	*web.Exchange
	derived *derived
}

var _ http.ResponseWriter = (*exchange)(nil)
