// Package door adapts the doors and observers of programs that embed the server to the server's own interfaces.
package door

import (
	"io"

	"github.com/toolsrv/toolsrv/internal/web"
	public "github.com/toolsrv/toolsrv/wasmtools/web"
)

// A foreign is a door of a program that embeds the server.
type foreign struct {
	door   public.Door
	policy web.Policy
}

var _ io.Closer = foreign{}

// Of returns a program's door, or nil for nil.
func Of(d public.Door) web.Door {
	if d == nil {
		return nil
	}
	f := foreign{door: d}
	if with, ok := d.(interface{ Policy() public.Policy }); ok {
		p := with.Policy()
		f.policy = web.Policy{Open: p.Open, Role: p.Role, Pages: web.Pages(p.Pages)}
	}
	return f
}

// Serve lets the program's door answer.
func (f foreign) Serve(x *web.Exchange) { f.door.Serve((*public.Exchange)(x)) }

// Policy returns the policy of the program's door.
func (f foreign) Policy() web.Policy { return f.policy }

// Close closes the program's door if it has a method Close.
func (f foreign) Close() error {
	if c, ok := f.door.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// An observer is an observer of a program that embeds the server.
type observer struct{ public.Observer }

// Answered tells the program.
func (o observer) Answered(a *web.Answer) { o.Observer.Answered((*public.Answer)(a)) }

// Observers returns a program's observers.
func Observers(of []public.Observer) (all []web.Observer) {
	for _, o := range of {
		all = append(all, observer{o})
	}
	return all
}
