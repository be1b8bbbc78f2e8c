package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/typed"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// An Operation is one thing that an operator can ask of a running server. It never changes. Looks and changes make one of a function.
type Operation struct {
	// Name is the operation's, as on the command line, such as "tools" or "tokens add".
	Name string
	// Summary says in a sentence what it does.
	Summary string
	// Method is GET for one that only looks, and has its arguments in the query, and POST for one that changes something, and has them in its
	// body, a JSON object.
	Method string
	// Role is what its callers must have. If empty, no role is needed, but the caller must be known.
	Role string
	// Local is whether only callers over the socket may ask for it.
	Local bool

	secret            bool                   // its arguments may have a secret, in the wrong place, too: no answer shows one of them
	arguments, result func() *schemas.Schema // made once they are needed: a command needs none, and all take 15 ms
	parameters        []parameter            // of the query
	run               func(ctx context.Context, r *Request, arguments []byte) ([]byte, error)
	copy              func(ctx context.Context, r *Request, w io.Writer) error // in place of run
	waits             bool                                                     // it may wait for what happens, until the service ends its streams
	takes             int64                                                    // bytes of the body, which is not its arguments; 0 means those are it
}

// A Request is one request for an operation.
type Request struct {
	// Target is the server that is asked.
	*Target
	// Operation is the name of what is asked for. Run sets it.
	Operation string
	// Principal is who asks.
	Principal *wasmtools.Principal
	// Generation is what the request goes by: who asks, what they may do, and what they are told. If nil, the current one.
	Generation *wasmtools.Generation
	// From is where they ask from, such as an address, and ID the request's, as in its answer and the log.
	From, ID string
	// Local is whether they ask over the socket.
	Local bool
	// Body writes the body of a request for an operation that takes bytes, once, and then looks again as Still does. It is nil for others.
	Body func(w io.Writer) error
	// Still looks again whether the caller may ask for the operation, as one does that has waited for others. If nil, nothing changes that.
	Still func() error
	// Expected is the version that what is changed must have, or empty for any.
	Expected string
	// Version is the version of what the answer tells, or empty. The operation sets it.
	Version string
}

// generation returns the generation that the request goes by.
func (r *Request) generation() *wasmtools.Generation {
	if r.Generation != nil {
		return r.Generation
	}
	return r.Service.Table.Current()
}

// inForce returns the configuration of that generation.
func (r *Request) inForce() *core.Configuration { return configurationOf(r.generation()) }

// configurationOf returns the configuration of a generation, or nil while the first one is made.
func configurationOf(g *wasmtools.Generation) *core.Configuration {
	if v, ok := g.Configuration().(core.Value); ok {
		return v.Base()
	}
	return nil
}

// Path returns the operation's path below the door's, such as "/tokens/add".
func (o *Operation) Path() string { return "/" + strings.ReplaceAll(o.Name, " ", "/") }

// ActionOf returns what the audit calls the operation with a path, such as "tokens.add".
func ActionOf(path string) string { return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".") }

// Changes reports whether the operation changes something.
func (o *Operation) Changes() bool { return o.Method != http.MethodGet }

// Looks returns an operation that only looks. Its arguments are an In, a struct whose fields are strings, booleans, integers, or lists of
// strings, and its result is an Out: the tags that package typed reads describe them. Its first use panics if there is no schema for them.
func Looks[In, Out any](name, summary string, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	o := operation(name, summary, run)
	o.Method, o.Role, o.parameters = http.MethodGet, wasmtools.RoleAdminRead, parametersOf(reflect.TypeFor[In]())
	return o
}

// Changes returns an operation that changes something. In and Out are as in [Looks], where a field may be of any type. If nothing is to be
// changed, run must do nothing. If what it changes has a version, it must look at Expected.
func Changes[In, Out any](name, summary string, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	o := operation(name, summary, run)
	o.Method, o.Role = http.MethodPost, wasmtools.RoleAdmin
	return o
}

// Copies returns an operation whose result are bytes, which it writes. An error after the first byte means that the result is incomplete.
func Copies(name, summary string, copy func(ctx context.Context, r *Request, w io.Writer) error) Operation {
	o := Looks(name, summary, func(context.Context, *Request, struct{}) (struct{}, error) {
		return struct{}{}, errors.New("admin: a copy has no result")
	})
	o.Role, o.copy = wasmtools.RoleAdmin, copy
	return o
}

// Takes returns an operation that changes something by bytes, which run reads with Body: most of them at most. Its arguments are in the query,
// as those of [Looks] are.
func Takes[In, Out any](name, summary string, most int64, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	o := Changes(name, summary, run)
	o.parameters, o.takes = parametersOf(reflect.TypeFor[In]()), most
	return o
}

// Takes returns how many bytes the body may have at most, if that is not the arguments, and otherwise 0.
func (o *Operation) Takes() int64 { return o.takes }

// Waits reports whether the operation may wait for what happens: it ends with the service's streams, so that nobody waits for it.
func (o *Operation) Waits() bool { return o.waits }

// Copies reports whether the result are bytes, for which Copy is called in place of Run.
func (o *Operation) Copies() bool { return o.copy != nil }

// Copy is Run for an operation whose result are bytes.
func (o *Operation) Copy(ctx context.Context, r *Request, w io.Writer) error {
	r.Operation = o.Name
	if err := o.Admits(r); err != nil {
		return err
	}
	return o.copy(ctx, r, w)
}

func operation[In, Out any](name, summary string, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	results := sync.OnceValue(func() typed.Results { return typed.ResultsOf(reflect.TypeFor[Out]()) })
	return Operation{
		Name: name, Summary: summary,
		arguments: compiled(name, typed.Arguments, reflect.TypeFor[In]()),
		result:    compiled(name, typed.Result, reflect.TypeFor[Out]()),
		run: func(ctx context.Context, r *Request, arguments []byte) ([]byte, error) {
			var in In
			if err := typed.Decode(arguments, &in); err != nil {
				return nil, invalid(err.Error())
			}
			out, err := run(ctx, r, in)
			if err != nil {
				return nil, err
			}
			return results().Encode(&out)
		},
	}
}

// compiled returns what describes a type, once, and panics there if nothing can.
func compiled(name string, describe func(reflect.Type) (json.RawMessage, error), t reflect.Type) func() *schemas.Schema {
	return sync.OnceValue(func() *schemas.Schema {
		text, err := describe(t)
		var s *schemas.Schema
		if err == nil {
			s, err = schemas.Compile(text)
		}
		if err != nil {
			panic(fmt.Sprintf("admin: the operation %q: a %s can't be described: %v", name, t, err))
		}
		return s
	})
}

// Run checks who asks for what, and does it. arguments is a JSON object, or empty. An *wasmtools.Error is for the one who asks.
func (o *Operation) Run(ctx context.Context, r *Request, arguments []byte) (result []byte, err error) {
	if err := o.Admits(r); err != nil {
		return nil, err
	}
	valid, err := o.arguments().Validate(arguments)
	if misfit, ok := errors.AsType[*misfit.Error](err); ok {
		if o.secret {
			for i := range misfit.Violations {
				misfit.Violations[i].Input = json.RawMessage(`"[secret]"`)
			}
		}
		return nil, &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: misfit.Message, Violations: misfit.Violations}
	}
	if err != nil {
		return nil, err
	}
	r.Operation = o.Name
	return o.run(ctx, r, valid)
}

// Admits returns why somebody may not have the operation, or nil. Doors check the role earlier, so this matters only if one forgets to.
func (o *Operation) Admits(r *Request) error {
	p := r.Principal
	switch {
	case p.Origin() == "" || p.Origin() == wasmtools.OriginOpen:
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "This needs credentials"}
	case o.Role != "" && !p.Has(o.Role):
		return &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: fmt.Sprintf("%q needs the role %q, which the caller doesn't have", o.Name, o.Role)}
	case o.Local && !r.Local:
		return &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: fmt.Sprintf("%q is available only on the server's own machine: ask over its socket", o.Name)}
	case o.Changes() && !r.Local && r.Target != nil:
		return r.cutOff()
	}
	return nil
}

// cutOff returns an error where the server doesn't hear any more who may still change something, since its state is cut off.
func (r *Request) cutOff() error {
	cut := r.Service.State.CutOff()
	if cut == nil {
		return nil
	}
	since := cut.Since.UTC().Format(time.RFC3339)
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Nothing was changed: the state is cut off since " + since + ", so this server can't know who may still make changes. Ask another server, or ask on this server's machine", Err: cut.Why}
}

// Expect returns an error where the version of what is changed is not the one that the caller expects.
func (r *Request) Expect(version string) error {
	if r.Expected == "" || r.Expected == version {
		return nil
	}
	return &wasmtools.Error{Code: wasmtools.CodeChanged, Message: fmt.Sprintf("Somebody else has changed it: it is at version %s, and %s was expected", version, text.Short(r.Expected))}
}

// A parameter is an argument in the query.
type parameter struct {
	name string
	kind reflect.Kind
}

func parametersOf(t reflect.Type) (all []parameter) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue // its fields come, too
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := f.Type.Kind()
		switch {
		case name == "":
			panic(fmt.Sprintf("admin: the field %s of %s has no name in JSON", f.Name, t))
		case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int, kind == reflect.Slice && f.Type.Elem().Kind() == reflect.String:
			all = append(all, parameter{name, kind})
		default:
			panic(fmt.Sprintf("admin: the field %s of %s can't be used in a query", f.Name, t))
		}
	}
	return all
}

// Arguments returns the arguments in a query as a JSON object. Run reports what does not fit.
func (o *Operation) Arguments(query url.Values) ([]byte, error) {
	object := map[string]any{}
	for name, values := range query {
		at := slices.IndexFunc(o.parameters, func(p parameter) bool { return p.name == name })
		switch {
		case at < 0:
			object[name] = values // the schema names those that there are
		case o.parameters[at].kind == reflect.Slice:
			object[name] = values
		case len(values) > 1:
			return nil, invalid(fmt.Sprintf("The query may have the parameter %q only once", text.Short(name)))
		default:
			object[name] = valueOf(o.parameters[at].kind, values[0])
		}
	}
	return json.Marshal(object)
}

// valueOf returns what a text in a query is in JSON. One that does not fit stays a text.
func valueOf(kind reflect.Kind, s string) any {
	fits := kind == reflect.Bool && (s == "true" || s == "false")
	if kind == reflect.Int {
		var n int
		fits = json.Unmarshal([]byte(s), &n) == nil
	}
	if fits {
		return json.RawMessage(s)
	}
	return s
}

// Query returns arguments, a JSON object that fits, as a query.
func (o *Operation) Query(arguments []byte) (url.Values, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &object); err != nil {
		return nil, fmt.Errorf("the arguments of %q: %w", o.Name, err)
	}
	query := url.Values{}
	for name, value := range object {
		var one string
		var several []string
		switch {
		case json.Unmarshal(value, &one) == nil:
			query.Set(name, one)
		case json.Unmarshal(value, &several) == nil:
			query[name] = several
		default:
			query.Set(name, string(value))
		}
	}
	return query, nil
}

// invalid returns the error of arguments that are wrong.
func invalid(message string) *wasmtools.Error {
	return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: message}
}

// sentence returns what an error says, with a capital letter.
func sentence(err error) string { return strings.ToUpper(err.Error()[:1]) + err.Error()[1:] }
