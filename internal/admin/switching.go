package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Switched are the arguments of the operations enable and disable.
type Switched struct {
	Names   []string `json:"names" description:"Tools and namespaces, such as math/add, math or math/*; * is all." minItems:"1" maxItems:"1000"`
	Reason  string   `json:"reason,omitempty" description:"Why. Callers of a disabled tool get to see it." maxLength:"1000"`
	Passing bool     `json:"until_restart,omitempty" description:"Whether the switch lasts only until the server restarts."`
}

// Reset are the arguments of the operation reset.
type Reset struct {
	Names []string `json:"names" description:"Tools and namespaces, such as math/add, math or math/*; * is all." minItems:"1" maxItems:"1000"`
}

// Switches are the switches that operators have set.
type Switches struct {
	Version  string   `json:"version" description:"Their version, for If-Match."`
	Switches []Switch `json:"switches" description:"The switches, by scope. If several cover a tool, the most specific one counts."`
}

// A Switch is a switch that an operator has set.
type Switch struct {
	Scope   string    `json:"scope" description:"The tool or namespace, such as /math; / is all."`
	Enabled bool      `json:"enabled" description:"Whether the tools are switched on."`
	Reason  string    `json:"reason,omitempty" description:"The reason that was given."`
	Who     string    `json:"who,omitempty" description:"Who set the switch; empty for the program."`
	Since   time.Time `json:"since" description:"When the switch was set."`
	Passing bool      `json:"until_restart,omitempty" description:"Whether the switch lasts only until the server restarts."`
}

// A Switching is the outcome of a change of switches.
type Switching struct {
	Changed bool   `json:"changed" description:"Whether any switch was different before."`
	Version string `json:"version" description:"The version of all switches now, for If-Match."`
	Tools   []Tool `json:"tools" description:"The named tools, as they are now."`
}

func switchesNow() Operation {
	return Looks("switches", "List what was switched on and off", func(_ context.Context, r *Request, _ struct{}) (Switches, error) {
		all := Switches{Version: r.Service.Switches.Version(), Switches: []Switch{}}
		for _, s := range r.Service.Table.Current().Switches() {
			all.Switches = append(all.Switches, Switch{s.Scope, s.Enabled, s.Reason, s.By, s.Since, r.Service.Switches.IsPassing(s.Scope)})
		}
		r.Version = all.Version
		return all, nil
	})
}

func enable() Operation {
	return Changes("enable", "Switch tools and namespaces on", func(ctx context.Context, r *Request, in Switched) (Switching, error) {
		return r.switchTo(ctx, true, in)
	})
}

func disable() Operation {
	return Changes("disable", "Switch tools and namespaces off", func(ctx context.Context, r *Request, in Switched) (Switching, error) {
		return r.switchTo(ctx, false, in)
	})
}

func reset() Operation {
	return Changes("reset", "Let the configuration decide again whether tools are on", func(ctx context.Context, r *Request, in Reset) (Switching, error) {
		scopes, err := scopesOf(in.Names)
		if err != nil {
			return Switching{}, err
		}
		if err := r.Service.Switches.Refresh(ctx); err != nil {
			return Switching{}, switchError(err)
		}
		g := r.Service.Table.Current()
		for _, scope := range scopes {
			if s, ok := g.Switch(scope); ok && s.Scope != scope {
				return Switching{}, &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: fmt.Sprintf("%s is switched by %s: reset that", text.Short(scope), s.Scope)}
			}
		}
		return r.apply(ctx, scopes, in, switches.Change{Reset: scopes})
	})
}

// switchTo switches existing tools and namespaces.
func (r *Request) switchTo(ctx context.Context, on bool, in Switched) (Switching, error) {
	scopes, err := scopesOf(in.Names)
	if err != nil {
		return Switching{}, err
	}
	if err := checkReason(in.Reason); err != nil {
		return Switching{}, err
	}
	c := switches.Change{Passing: in.Passing}
	now := time.Now().UTC().Truncate(time.Millisecond)
	for _, scope := range scopes {
		if err := r.knows(scope); err != nil {
			return Switching{}, err
		}
		c.Set = append(c.Set, wasmtools.Switch{Scope: scope, Enabled: on, Reason: in.Reason, Since: now, By: r.by()})
	}
	return r.apply(ctx, scopes, in, c)
}

// checkReason returns an error if a reason is not valid. Callers see the reason and the audit keeps it, so it must not contain a token.
func checkReason(reason string) error {
	switch {
	case strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		return invalid("The reason has a control character: leave it out")
	case tokens.Within(reason):
		return invalid("The reason contains a token: leave it out, and revoke it if others have seen it")
	}
	return nil
}

// switchError returns the caller's error for an error.
func switchError(err error) error {
	switch {
	case errors.Is(err, switches.ErrChanged):
		return &wasmtools.Error{Code: wasmtools.CodeChanged, Message: err.Error()}
	case errors.Is(err, switches.ErrNotKept), errors.Is(err, state.ErrUnavailable), errors.Is(err, state.ErrTooLarge):
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Nothing was switched: " + err.Error() + "; until_restart (--until-restart) switches without storing the change", Err: err}
	}
	return err
}

// apply changes switches, and returns the affected tools. If nothing changes, the audit gets no entry.
func (r *Request) apply(ctx context.Context, scopes []string, asked any, c switches.Change) (Switching, error) {
	c.Expect = r.Expect
	var changed bool
	var err error
	if !c.Passing { // another server may just have switched something, so that nothing seems to change
		err = r.Service.Switches.Refresh(ctx)
	}
	switch {
	case err != nil: // it is reported below
	case r.Service.Switches.IsSo(&c):
		err = r.Expect(r.Service.Switches.Version())
	default:
		err = r.change(ctx, strings.Join(scopes, " "), nil, asked, func(ctx context.Context) (err error) {
			changed, err = r.Service.Switches.Apply(ctx, c)
			return err
		})
	}
	if err != nil {
		return Switching{}, switchError(err)
	}
	if changed {
		said := []any{"switched", scopes, "to", r.Operation, "principal", r.Principal.String(), "request_id", r.ID}
		if id := personal.Apart(r.Principal); id != "" {
			said = append(said, "caller", string(id))
		}
		r.Service.Logger.Info("tools switched", said...)
	}
	s := Switching{Changed: changed, Version: r.Service.Switches.Version(), Tools: []Tool{}}
	g := r.Service.Table.Current()
	decide := decider(g)
	for _, route := range g.Routes() {
		if isIn(scopes, route.Path) {
			s.Tools = append(s.Tools, toolOf(&route, decide(&route)))
		}
	}
	r.Version = s.Version
	return s, nil
}

func scopesOf(names []string) (scopes []string, err error) {
	for _, name := range names {
		scope, err := switches.Scope(name)
		if err != nil {
			return nil, invalid(err.Error())
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}

// knows returns an error if the server has no tool at a scope or below it. Such a scope must be a mistake: switching it off would do nothing.
func (r *Request) knows(scope string) error {
	var paths []string
	for _, route := range r.Service.Table.Tools() {
		if isIn([]string{scope}, route.Path) {
			return nil
		}
		paths = append(paths, route.Path)
	}
	message := fmt.Sprintf("There is no tool or namespace %s", text.Short(scope))
	if near := text.Nearest(scope, paths); near != "" {
		message += ": did you mean " + near + "?"
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: message}
}

// isIn reports whether a path is one of the scopes, or below one.
func isIn(scopes []string, path string) bool {
	for _, scope := range scopes {
		if rest, ok := strings.CutPrefix(path, scope); ok && (rest == "" || rest[0] == '/' || scope == "/") {
			return true
		}
	}
	return false
}
