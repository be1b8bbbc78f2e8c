package session_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

func TestMain(m *testing.M) { testkit.Main(m, "internal/mcp", "modelcontextprotocol/go-sdk") }

// An app is a service of a few tools, which are Go functions.
type app struct {
	table   *wasmtools.RouteTable
	set     *toolset.Set
	waiting chan struct{} // gets a value when a call of the tool wait has begun
	ended   chan error    // gets the reason why a call of the tool wait ended
}

func newApp(t testing.TB) *app {
	t.Helper()
	a := &app{waiting: make(chan struct{}, 2000), ended: make(chan error, 2000)}
	table, err := wasmtools.NewRouteTable(
		tool("math/add", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"required":["a"],"additionalProperties":false}`, add),
		tool("math/deep/off", `{"type":"object"}`, add),
		tool("echo", `{"type":"object"}`, func(_ context.Context, call *wasmtools.Call) ([]byte, error) { return call.Arguments, nil }),
		tool("fail", `{"type":"object"}`, func(context.Context, *wasmtools.Call) ([]byte, error) { return nil, errors.New("no luck") }),
		tool("secret", `{"type":"object"}`, func(context.Context, *wasmtools.Call) ([]byte, error) {
			return nil, &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New("the password is 12345")}
		}),
		tool("panic", `{"type":"object"}`, func(context.Context, *wasmtools.Call) ([]byte, error) { panic("the password is 12345") }),
		tool("steps", `{"type":"object"}`, func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
			if call.Listener != nil {
				call.Listener.Progress(1, 4, "a \"quarter\"\n")
				call.Listener.Progress(1.5, 0, "")
			}
			return []byte(`"done"`), nil
		}),
		tool("wait", `{"type":"object"}`, func(ctx context.Context, _ *wasmtools.Call) ([]byte, error) {
			a.waiting <- struct{}{}
			<-ctx.Done()
			a.ended <- ctx.Err()
			return nil, ctx.Err()
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Disable("/math/deep/off", "under repair"); err != nil {
		t.Fatal(err)
	}
	a.table, a.set = table, toolset.New(table, toolset.Options{Info: toolset.Info{Name: "test", Version: "1", Instructions: "Add."}})
	t.Cleanup(func() { _ = a.set.Close() })
	return a
}

func add(_ context.Context, call *wasmtools.Call) ([]byte, error) {
	var in struct{ A, B int }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]int{"sum": in.A + in.B})
}

// tool returns a tool at a path such as "math/add".
func tool(path, parameters string, f wasmtools.CallerFunc) *wasmtools.Tool {
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", Caller: f, Parameters: schema.MustCompile(parameters)}
}

// put adds a tool to the table.
func (a *app) put(t testing.TB, path string) {
	t.Helper()
	var all []*wasmtools.Tool
	for _, route := range a.table.Current().Routes() {
		all = append(all, route.Tool)
	}
	if err := a.table.Replace(append(all, tool(path, `{"type":"object"}`, add)), nil); err != nil {
		t.Fatal(err)
	}
}

// A pipe is a client of Stdio, at the other ends of its pipes.
type pipe struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	ended chan error // gets what Stdio returned
	stop  context.CancelFunc
}

func (a *app) stdio(t testing.TB, o session.StdioOptions) *pipe {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	p := &pipe{t: t, in: in, lines: make(chan string, 10_000), ended: make(chan error, 1), stop: stop}
	go func() {
		p.ended <- session.Stdio(ctx, a.set, inReader, outWriter, o)
		_ = outWriter.Close()
		_ = inReader.Close()
	}()
	go func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 64<<20)
		for scanner.Scan() {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		stop()
		_ = in.Close()
		for range p.lines {
		}
	})
	return p
}

// send writes lines.
func (p *pipe) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatal(err)
		}
	}
}

// next returns the next line that the server wrote.
func (p *pipe) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the output has ended")
		}
		return line
	case <-time.After(time.Minute):
		p.t.Fatal("nothing came for a minute")
	}
	return ""
}

// quiet checks that the server has written nothing else: the answer to a ping is the next line.
func (p *pipe) quiet(version string) {
	p.t.Helper()
	p.send(request(`"quiet"`, "tools/call", version, `"name":"echo"`))
	if line := p.next(); !strings.Contains(line, `"id":"quiet"`) {
		p.t.Errorf("got %s before the answer to the request after it", line)
	}
}

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// begin is initialize.
const begin = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// request returns a request in a version of the protocol.
func request(id, method, version string, params ...string) string {
	if version == modern {
		params = append(params, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":`+id+`}`)
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + strings.Join(params, ",") + `}}`
}

// sameJSON reports whether two texts are the same JSON.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y bytes.Buffer
	return canonical(t, &x, a) == canonical(t, &y, b)
}

func canonical(t testing.TB, to *bytes.Buffer, text string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.NewEncoder(to).Encode(v); err != nil {
		t.Fatal(err)
	}
	return to.String()
}
