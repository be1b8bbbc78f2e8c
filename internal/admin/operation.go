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

// An Operation is one thing that an operator can do with a running server. It never changes. [Looks] and [Changes] make one from a function.
type Operation struct {
	// Name is the operation's name, as on the command line, such as "tools" or "tokens add".
	Name string
	// Summary says in one sentence what the operation does.
	Summary string
	// Method is GET for an operation that only looks, with its arguments in the query. It is POST for one that changes something, with its arguments
	// in the body, a JSON object.
	Method string
	// Role is the role that callers must have. If empty, no role is needed, but the caller must be identified.
	Role string
	// Local is whether only callers over the socket may use it.
	Local bool

	secret            bool                   // the arguments may contain a secret, even in the wrong place, so no answer repeats any of them
	arguments, result func() *schemas.Schema // made when they are first needed: commands need none, and all together take 15 ms
	parameters        []parameter            // the parameters of the query
	run               func(ctx context.Context, r *Request, arguments []byte) ([]byte, error)
	copy              func(ctx context.Context, r *Request, w io.Writer) error // used in place of run
	waits             bool                                                     // the operation may wait for events, until the service ends its streams
	takes             int64                                                    // limit in bytes of a body that is not the arguments; 0 if the body is the arguments
}

// A Request is one request for an operation.
type Request struct {
	// Target is the server.
	*Target
	// Operation is the name of the operation. Run sets it.
	Operation string
	// Principal is the caller.
	Principal *wasmtools.Principal
	// Generation is the generation for the request. It decides what the caller may do, and what the caller is told. If nil, it is the current one.
	Generation *wasmtools.Generation
	// From is where the request came from, such as an address. ID is the request id, as in the answer and the log.
	From, ID string
	// Local is whether the request came over the socket.
	Local bool
	// Body writes the body of a request for an operation that takes bytes. It may be called once, and then checks the caller as Still does. It is nil
	// for other operations.
	Body func(w io.Writer) error
	// Still checks again that the caller may use the operation. Call it after waiting for others. If nil, the permission can't change.
	Still func() error
	// Expected is the version that the target of a change must have, or empty for any.
	Expected string
	// Version is the version of the target in the answer, or empty. The operation sets it.
	Version string
}

// generation returns the generation for the request.
func (r *Request) generation() *wasmtools.Generation {
	if r.Generation != nil {
		return r.Generation
	}
	return r.Service.Table.Current()
}

// inForce returns the configuration of the request's generation.
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

// ActionOf returns the audit's name for the operation with a path, such as "tokens.add".
func ActionOf(path string) string { return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".") }

// Changes reports whether the operation changes something.
func (o *Operation) Changes() bool { return o.Method != http.MethodGet }

// Looks returns an operation that only looks. Its arguments are an In, a struct whose fields are strings, booleans, integers, or lists of strings.
// Its result is an Out. Tags that package typed reads describe both. The first use panics if a schema can't be made of them.
func Looks[In, Out any](name, summary string, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	o := operation(name, summary, run)
	o.Method, o.Role, o.parameters = http.MethodGet, wasmtools.RoleAdminRead, parametersOf(reflect.TypeFor[In]())
	return o
}

// Changes returns an operation that changes something. In and Out are as for [Looks], but fields may have any type. If nothing needs to be changed,
// run must do nothing. If the target has a version, run must check Expected.
func Changes[In, Out any](name, summary string, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	o := operation(name, summary, run)
	o.Method, o.Role = http.MethodPost, wasmtools.RoleAdmin
	return o
}

// Copies returns an operation whose result is bytes, which run writes. An error after the first byte means that the result is incomplete.
func Copies(name, summary string, copy func(ctx context.Context, r *Request, w io.Writer) error) Operation {
	o := Looks(name, summary, func(context.Context, *Request, struct{}) (struct{}, error) {
		return struct{}{}, errors.New("admin: a copy has no result")
	})
	o.Role, o.copy = wasmtools.RoleAdmin, copy
	return o
}

// Takes returns an operation that makes a change with the bytes in the request's body, which run reads with Body. most is how many bytes there may be. Its
// arguments are in the query, as for [Looks].
func Takes[In, Out any](name, summary string, most int64, run func(ctx context.Context, r *Request, in In) (Out, error)) Operation {
	o := Changes(name, summary, run)
	o.parameters, o.takes = parametersOf(reflect.TypeFor[In]()), most
	return o
}

// Takes returns how many bytes the body may have, or 0 if the body holds the arguments.
func (o *Operation) Takes() int64 { return o.takes }

// Waits reports whether the operation may wait for events. If so, it ends with the service's streams, so that a shutdown does not wait for it.
func (o *Operation) Waits() bool { return o.waits }

// Copies reports whether the result is bytes. Then call Copy instead of Run.
func (o *Operation) Copies() bool { return o.copy != nil }

// Copy is Run for an operation whose result is bytes.
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

// compiled returns a function that makes the schema of a type once. It panics if that can't be made.
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

// Run checks caller and arguments, and runs the operation. arguments is a JSON object, or empty. An *wasmtools.Error is meant for the caller.
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

// Admits returns an error if the caller may not use the operation. Doors check the role earlier, so this matters only if one forgets to.
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

// cutOff returns an error if the server's state is cut off, since the server can't know then who may still make changes.
func (r *Request) cutOff() error {
	cut := r.Service.State.CutOff()
	if cut == nil {
		return nil
	}
	since := cut.Since.UTC().Format(time.RFC3339)
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Nothing was changed: the state is cut off since " + since + ", so this server can't know who may still make changes. Ask another server, or ask on this server's machine", Err: cut.Why}
}

// Expect returns an error if the target's version is not the one that the caller expects.
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
			continue // an embedded struct, whose fields follow
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

// Arguments returns the arguments in a query as a JSON object. Run reports invalid ones.
func (o *Operation) Arguments(query url.Values) ([]byte, error) {
	object := map[string]any{}
	for name, values := range query {
		at := slices.IndexFunc(o.parameters, func(p parameter) bool { return p.name == name })
		switch {
		case at < 0:
			object[name] = values // the schema's error lists the known names
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

// valueOf returns a text in a query as JSON of the right type. A text that does not fit stays a string.
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

// Query returns arguments, a valid JSON object, as a query.
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

// invalid returns the error for wrong arguments.
func invalid(message string) *wasmtools.Error {
	return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: message}
}

// sentence returns the text of an error with a capital first letter.
func sentence(err error) string { return strings.ToUpper(err.Error()[:1]) + err.Error()[1:] }
