// Package client runs the operations of package admin on a running server, over its socket or over HTTP.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/nothttp"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/trickle"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// ErrNoServer is wrapped in the error if no server answers. That error says what to do.
var ErrNoServer = errors.New("no server answers")

const (
	// connectTime bounds the time for connecting to a server.
	connectTime = 5 * time.Second
	// permitTime is how long to wait for a server, or a proxy in front of it, to agree to receive a file ("100 Continue"). After that the file is
	// sent anyway.
	permitTime = time.Second
	// lookTime is how long a server may take to begin its answer to a request over HTTP that changes nothing, and changeTime is the same for all
	// other requests. The server itself ends a request that changes nothing after two minutes, unless its tools may take longer. It ends a put,
	// with its file, after ten minutes.
	lookTime   = 2*time.Minute + 10*time.Second
	changeTime = 10*time.Minute + 10*time.Second
	// maxAnswer bounds an answer in bytes: a list of 100,000 tools fits.
	maxAnswer = 256 << 20
)

// A Client is for one server. It is safe for concurrent use.
type Client struct {
	base   string
	token  string
	path   string // the path of the socket, or ""
	asking *http.Transport

	look, change time.Duration // lookTime and changeTime
	stall        time.Duration // how long an answer that has begun may be silent
}

// errSilent is the reason for giving up on a request.
var errSilent = errors.New("it accepts the connection, but doesn't answer")

// OverSocket returns a client for the server with the socket at path.
func OverSocket(path string) (*Client, error) {
	if err := socket.CheckPath(path); err != nil {
		return nil, err
	}
	c := &Client{base: "http://socket" + door.Path, path: path, look: changeTime, change: changeTime, stall: trickle.Stall}
	c.asking = &http.Transport{ExpectContinueTimeout: permitTime, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: connectTime}
		return d.DialContext(ctx, "unix", path)
	}}
	return c, nil
}

// OverHTTP returns a client for the server at a URL such as "https://tools.example.com", which sends a token. It uses no proxy from the environment,
// and follows no redirects.
func OverHTTP(server, token string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of a server: write it as https://tools.example.com", server)
	}
	if token == "" {
		return nil, errors.New("asking a server at its address needs a token with the scope admin or admin:read: put it into the variable TOOLSRV_TOKEN")
	}
	d := net.Dialer{Timeout: connectTime}
	return &Client{
		base: u.JoinPath(door.Path).String(), token: token, look: lookTime, change: changeTime, stall: trickle.Stall,
		asking: &http.Transport{DialContext: d.DialContext, ForceAttemptHTTP2: true, ExpectContinueTimeout: permitTime},
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.asking.CloseIdleConnections() }

// An Answer is the answer of a server.
type Answer struct {
	// Result is JSON. Version is the value for If-Match in a change, or "".
	Result  json.RawMessage
	Version string
}

// Into decodes the result into what to points to.
func (a *Answer) Into(to any) error {
	if err := json.Unmarshal(a.Result, to); err != nil {
		return fmt.Errorf("read the server's answer, which may be of another version: %w", err)
	}
	return nil
}

// Do runs an operation. arguments is the operation's struct of arguments. expected is the version that the target of a change must have, or empty. If
// the server refuses, the error is an *wasmtools.Error.
func (c *Client) Do(ctx context.Context, name string, arguments any, expected string) (*Answer, error) {
	request, err := c.request(ctx, admin.Find(name), arguments)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, request, expected)
}

// Put is Do for an operation that takes a file of size bytes. A server that refuses the caller or the size does so before the file is sent, since the
// answer may be lost if the connection ends while a file is being sent.
func (c *Client) Put(ctx context.Context, name string, arguments any, expected string, file io.Reader, size int64) (*Answer, error) {
	request, err := c.request(ctx, admin.Find(name), arguments)
	if err != nil {
		return nil, err
	}
	request.Body, request.ContentLength = io.NopCloser(file), size
	request.Header.Set("Expect", "100-continue")
	return c.send(ctx, request, expected)
}

// send sends a request, and returns its answer.
func (c *Client) send(ctx context.Context, request *http.Request, expected string) (*Answer, error) {
	if expected != "" {
		request.Header.Set("If-Match", `"`+expected+`"`)
	}
	response, err := c.roundTrip(ctx, request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the server's answer: %w", err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the server's answer has more than %d bytes", maxAnswer)
	case response.StatusCode != http.StatusOK:
		return nil, c.refused(response, body)
	case !json.Valid(body):
		return nil, fmt.Errorf("%s is not the address of a toolsrv server: its answer is not JSON", c.place())
	}
	return &Answer{Result: body, Version: strings.Trim(response.Header.Get("ETag"), `"`)}, nil
}

// Copy runs an operation whose result is bytes, and writes them to w.
func (c *Client) Copy(ctx context.Context, name string, w io.Writer) error {
	request, err := c.request(ctx, admin.Find(name), struct{}{})
	if err != nil {
		return err
	}
	response, err := c.roundTrip(ctx, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("read the server's answer: %w", err)
		}
		return c.refused(response, body)
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("read the server's answer, which is incomplete: %w", err)
	}
	return nil
}

// roundTrip sends a request with the context ctx, and returns the answer once it has begun. It gives up on a server that doesn't begin the answer
// in time, or that sends the body too slowly.
func (c *Client) roundTrip(ctx context.Context, request *http.Request) (*http.Response, error) {
	limit := c.change
	if request.Method == http.MethodGet {
		limit = c.look
	}
	limited, cancel := context.WithCancelCause(ctx)
	silent := time.AfterFunc(limit, func() { cancel(errSilent) })
	defer silent.Stop()
	response, err := c.asking.RoundTrip(request.WithContext(limited))
	if err != nil {
		if ctx.Err() == nil && errors.Is(context.Cause(limited), errSilent) {
			err = fmt.Errorf("%w within %v", errSilent, limit.Round(time.Minute))
		}
		cancel(nil)
		return nil, c.unreachable(ctx, err)
	}
	response.Body = trickle.New(limited, cancel, response.Body, c.stall)
	return response, nil
}

// request returns the request for an operation.
func (c *Client) request(ctx context.Context, o *admin.Operation, arguments any) (*http.Request, error) {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("write the arguments of %q: %w", o.Name, err)
	}
	target, body := c.base+o.Path(), io.Reader(nil)
	if o.Changes() && o.Takes() == 0 {
		body = bytes.NewReader(encoded)
	} else {
		query, err := o.Query(encoded)
		if err != nil {
			return nil, err
		}
		if len(query) > 0 {
			target += "?" + query.Encode()
		}
	}
	request, err := http.NewRequestWithContext(ctx, o.Method, target, body)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Takes() > 0:
		request.Header.Set("Content-Type", admin.TakenType)
	case o.Changes():
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return request, nil
}

// place returns a name for the server.
func (c *Client) place() string {
	if c.path != "" {
		return c.path
	}
	return strings.TrimSuffix(c.base, door.Path)
}

// unreachable returns an error that says why no server has answered, and what to do.
func (c *Client) unreachable(ctx context.Context, err error) error {
	err = nothttp.Error(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.path == "":
		return fmt.Errorf("%w at %s: %w", ErrNoServer, c.place(), err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open the admin socket %s: it belongs to another user: run the command as that user or as root, or ask with --server and a token", c.path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s: start it with toolsrv openapi, or name the running server's configuration with --config, or its address with --server", ErrNoServer, c.path)
	}
	return fmt.Errorf("%w at %s: %w", ErrNoServer, c.path, err)
}

// refused returns the error in an answer.
func (c *Client) refused(response *http.Response, body []byte) error {
	var said struct {
		Detail    json.RawMessage `json:"detail"`
		Code      wasmtools.Code  `json:"code"`
		RequestID string          `json:"request_id"`
	}
	if json.Unmarshal(body, &said) != nil || said.Code == "" {
		return fmt.Errorf("%s answered %s: is it a toolsrv server?", c.place(), strings.TrimSpace(response.Status))
	}
	failed := &wasmtools.Error{Code: said.Code}
	if json.Unmarshal(said.Detail, &failed.Message) != nil {
		var violations []misfit.Violation
		_ = json.Unmarshal(said.Detail, &violations) // if this fails, the code alone has to say what is wrong
		failed.Violations = violations
	}
	if said.RequestID != "" {
		failed.Message += " (request " + text.Short(said.RequestID) + ")"
	}
	if said.Code == wasmtools.CodeNotFound && c.path == "" && failed.Message == "Not Found" {
		failed.Message = "the server has no admin interface over HTTP, or is an older version: set [admin] enabled = true in its configuration, or ask over the socket on its machine"
	}
	return failed
}
