// Package door serves the operations of package admin over HTTP, in JSON, with an OpenAPI document of their own.
package door

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Path is where a Door is mounted.
const Path = "/admin/v1"

// bodyTime bounds how long receiving a file may take.
const bodyTime = 5 * time.Minute

// Options are the settings of a Door. The zero value is usable.
type Options struct {
	// Local is whether this is the door of the socket, which has additional operations.
	Local bool
	// Off reports whether the door is switched off in a generation. It is called concurrently. If nil, the door is always on.
	Off func(g *wasmtools.Generation) bool
}

// A Door answers requests for the operations of a server. The caller must have the role of an administrator or, for some operations, any credentials.
// The door checks that itself, so it is never open, even if the rest of the service needs no credentials.
type Door struct {
	target     *admin.Target
	options    Options
	operations map[string]*admin.Operation // the operations by their paths
	document   *web.Document
}

var _ web.Door = (*Door)(nil)

// New returns the door for a server.
func New(target *admin.Target, o Options) *Door {
	d := &Door{target: target, options: o, operations: map[string]*admin.Operation{}}
	all := admin.Operations()
	for i := range all {
		d.operations[Path+all[i].Path()] = &all[i]
	}
	text := admin.Document(Path)
	sum := sha256.Sum256(text)
	d.document = web.NewDocument(text, `"`+hex.EncodeToString(sum[:12])+`"`)
	return d
}

// Policy admits only the service's own pages. Serve checks roles.
func (d *Door) Policy() web.Policy { return web.Policy{Pages: web.PagesOwn} }

// IsOff reports whether the door is switched off in a generation.
func (d *Door) IsOff(g *wasmtools.Generation) bool { return d.options.Off != nil && d.options.Off(g) }

// Serve answers one request.
func (d *Door) Serve(x *web.Exchange) {
	path := x.Request().URL.Path
	o := d.operations[path]
	role := wasmtools.RoleAdminRead
	if o != nil && o.Role == "" {
		role = ""
	}
	if err := web.Require(x.Call().Principal, role); err != nil { // before the answer can reveal which operations exist
		x.Fail(err)
		return
	}
	if path == Path+"/openapi.json" {
		if x.Allow(http.MethodGet, http.MethodHead) {
			x.SendDocument(d.document)
		}
		return
	}
	if o != nil && o.Takes() > 0 {
		role = o.Role // the body is large, so the role is checked before it is read
	}
	if err := web.Require(x.Call().Principal, role); err != nil {
		x.Fail(err)
		return
	}
	if o == nil {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "There is no such operation: " + Path + "/openapi.json lists them all"})
		return
	}
	if !x.Allow(o.Method) {
		return
	}
	x.SetOperation("admin " + o.Name)
	if o.Method == http.MethodGet {
		x.SetLooks()
	}
	arguments, err := argumentsOf(x, o)
	if err != nil {
		x.Fail(err)
		return
	}
	renew := func() error { // the token may have been revoked while the body arrived
		_, err := x.Renew()
		return err
	}
	if err := renew(); err != nil {
		x.Fail(err)
		return
	}
	expected, err := expectedOf(x.Request().Header)
	if err != nil {
		x.Fail(err)
		return
	}
	r := &admin.Request{Target: d.target, Principal: x.Call().Principal, Generation: x.Generation(), From: d.from(x), ID: x.Call().RequestID, Local: d.options.Local, Expected: expected}
	r.Still = func() error {
		if err := renew(); err != nil {
			return err
		}
		r.Principal, r.Generation = x.Call().Principal, x.Generation()
		return o.Admits(r)
	}
	if most := o.Takes(); most > 0 {
		r.Body = func(w io.Writer) error {
			// Files may come over slow lines. A connection that accepts no deadline is gone, and reading from it will show that.
			control := http.NewResponseController(x)
			_ = control.SetReadDeadline(time.Now().Add(bodyTime))
			_ = control.SetWriteDeadline(time.Now().Add(2 * bodyTime))
			if err := x.ReadBody(&taken{w, most}); err != nil {
				return err
			}
			return r.Still()
		}
	}
	if o.Copies() {
		x.Header().Set("Content-Type", "application/octet-stream")
		if err := o.Copy(x.Stream(), r, x); err != nil {
			x.Fail(err)
		}
		return
	}
	ctx := x.Context()
	if o.Waits() {
		var end context.CancelFunc
		ctx, end = context.WithCancel(x.Stream())
		defer end()
		recheck := x.Recheck()
		go func() { // ends the wait when tokens or other credentials change
			select {
			case <-recheck:
				end()
			case <-ctx.Done():
			}
		}()
	}
	result, err := o.Run(ctx, r, arguments)
	if err == nil && o.Waits() { // the token may have been revoked during the wait
		err = r.Still()
	}
	if err != nil {
		x.Fail(err)
		return
	}
	if r.Version != "" {
		x.Header().Set("ETag", `"`+r.Version+`"`)
	}
	x.Send(http.StatusOK, result)
}

// A taken is a body that is written to a file as it arrives.
type taken struct {
	w    io.Writer
	most int64
}

// Limit returns how many bytes the body may have.
func (t *taken) Limit() int64 { return t.most }

// TooLarge returns the error for a larger body.
func (t *taken) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: fmt.Sprintf("The file has more than %d bytes", t.most)}
}

// Read copies the body from r to the file.
func (t *taken) Read(r io.Reader, _ int64) error {
	n, err := io.Copy(told{t.w}, io.LimitReader(r, t.most+1))
	if err == nil && n > t.most {
		return t.TooLarge()
	}
	return err
}

// A told is a writer whose errors tell the caller that the server is to blame.
type told struct{ io.Writer }

func (w told) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		err = &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "The server can't write the file: " + err.Error(), Err: err}
	}
	return n, err
}

// from returns where a request comes from.
func (d *Door) from(x *web.Exchange) string {
	if d.options.Local {
		return "socket"
	}
	return x.From()
}

// argumentsOf returns the arguments of an operation as a JSON object.
func argumentsOf(x *web.Exchange, o *admin.Operation) ([]byte, error) {
	if o.Takes() > 0 {
		if values := x.Request().Header["Content-Type"]; len(values) != 1 || values[0] != admin.TakenType {
			return nil, &wasmtools.Error{Code: wasmtools.CodeUnsupportedMediaType, Message: "The body must be a file: send Content-Type: " + admin.TakenType}
		}
		if err := web.CheckEncoding(x.Request().Header); err != nil {
			return nil, err
		}
	}
	if !o.Changes() || o.Takes() > 0 {
		query, err := queryOf(x.Request())
		if err != nil {
			return nil, err
		}
		return o.Arguments(query)
	}
	if err := web.CheckType(x.Request().Header); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(x.Request().Body)
	if failed, ok := errors.AsType[*wasmtools.Error](err); ok {
		return nil, failed
	}
	return body, err
}

// expectedOf returns the version in If-Match, or "" for any version.
func expectedOf(h http.Header) (string, error) {
	lines := h["If-Match"]
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "*" {
		return "", nil
	}
	tag, quoted := strings.CutPrefix(lines[0], `"`)
	tag, closed := strings.CutSuffix(tag, `"`)
	if len(lines) > 1 || !quoted || !closed || tag == "" || strings.ContainsAny(tag, `",`) {
		return "", &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: `If-Match must be one ETag from an answer, with its quotes, or *`}
	}
	return tag, nil
}

func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: "The query can't be read: write name=value, with & between two and escape whatever is not a letter or digit with %", Err: err}
	}
	return query, nil
}
