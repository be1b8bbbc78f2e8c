package openapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/console"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestManual runs each command of docs/http.md and compares its output.
func TestManual(t *testing.T) {
	t.Parallel()
	plain, locked := manualApp(t), manualApp(t, bearer(t, "0123456789abcdef"))
	apps := map[string]http.Handler{"": plain.App, "<!-- with a token -->": locked.App}
	tag := serve(plain.App, get("/tools")).Header.Get("ETag")
	commands := 0
	for _, example := range examplesOf(t, "../../docs/http.md") {
		app, ok := apps[example.mark]
		if !ok {
			t.Fatalf("line %d: no server for %s", example.line, example.mark)
		}
		r, show := curl(t, strings.ReplaceAll(example.command, "ETAG", tag))
		got := serve(app, r)
		shown := strings.Split(strings.ReplaceAll(example.output, "ETAG", tag), "\n")
		if show.headers {
			if status := fmt.Sprintf("HTTP/1.1 %d %s", got.StatusCode, http.StatusText(got.StatusCode)); shown[0] != status {
				t.Errorf("line %d: got %q, the manual shows %q", example.line, status, shown[0])
			}
			shown = shown[1:]
			for len(shown) > 0 && shown[0] != "" {
				name, value, _ := strings.Cut(shown[0], ": ")
				if h := got.Header.Get(name); h != value {
					t.Errorf("line %d: got %s %q, the manual shows %q", example.line, name, h, value)
				}
				shown = shown[1:]
			}
		}
		if body := bodyOf(t, got); show.body && body != strings.TrimSpace(strings.Join(shown, "\n")) && body != strings.Join(shown, "\n")+"\n" {
			t.Errorf("line %d: got\n%s\nthe manual shows\n%s", example.line, body, strings.Join(shown, "\n"))
		}
		commands++
	}
	if commands < 6 {
		t.Errorf("found only %d commands: does the test still look in the right places?", commands)
	}
}

type manualServer struct {
	*openapi.App
	table *wasmtools.RouteTable
}

func manualApp(t *testing.T, dependencies ...openapi.Dependency) manualServer {
	operation := func(name, description, first, second string, f func(a, b float64) (float64, error)) *wasmtools.Tool {
		tool := tool("math/"+name, func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
			var in map[string]float64
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return nil, err
			}
			out, err := f(in[first], in[second])
			if err != nil {
				return nil, err
			}
			return json.Marshal(out)
		})
		result, err := schema.Compile(json.RawMessage(`{"type":"number"}`))
		if err != nil {
			t.Fatal(err)
		}
		tool.Description, tool.Result = description, result
		tool.Parameters = schema.MustCompile(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"number"},%q:{"type":"number"}},"required":[%[1]q,%q]}`, first, second))
		tool.Version, tool.Digest = "1.0.0", "fdae9efa4ab8ff1d1b7ceea87ce48ecb44a45f0ddaa4a51c4bbd0e4f7a2f8b5c"
		return tool
	}
	table := tableOf(t,
		operation("add", "Add two numbers.", "a", "b", func(a, b float64) (float64, error) { return a + b, nil }),
		operation("divide", "Divide one number by another.", "dividend", "divisor", func(a, b float64) (float64, error) {
			if b == 0 {
				return 0, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "The divisor is 0: pass another number.",
					ToolCode: "division_by_zero", Data: json.RawMessage(fmt.Sprintf(`{"dividend":%g}`, a))}
			}
			return a / b, nil
		}))
	return manualServer{appOf(t, table, openapi.Options{Dependencies: dependencies, Doors: console.Doors(console.Options{Title: "Tools", Version: "0.1.0", MCP: true})}), table}
}

// A manualExample is one command of a console block with its output.
type manualExample struct {
	mark            string // the comment above the block, or empty
	line            int
	command, output string
}

func examplesOf(t *testing.T, path string) []manualExample {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []manualExample
	inside, last, mark := false, "", ""
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		command, isCommand := strings.CutPrefix(text, "$ ")
		switch {
		case text == "```console":
			inside, mark = true, ""
			if strings.HasPrefix(last, "<!--") {
				mark = last
			}
		case strings.HasPrefix(text, "```"):
			inside = false
		case inside && isCommand:
			all = append(all, manualExample{mark: mark, line: n, command: command})
		case inside:
			e := &all[len(all)-1]
			e.output = strings.TrimPrefix(e.output+"\n"+text, "\n")
		}
		last = text
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

type shown struct{ headers, body bool }

// curl makes the request of a curl command. It knows the few options that the manual uses.
func curl(t *testing.T, command string) (*http.Request, shown) {
	t.Helper()
	show := shown{body: true}
	method, url, body := "", "", ""
	header := http.Header{}
	words := shellWords(command)
	if words[0] != "curl" {
		t.Fatalf("not a curl command: %s", command)
	}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-s":
		case "-i":
			show.headers = true
		case "-I":
			method, show = http.MethodHead, shown{headers: true}
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			method, body = http.MethodPost, words[i]
			if header.Get("Content-Type") == "" {
				header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
		default:
			url = words[i]
		}
	}
	if method == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Header = header
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	return r, show
}

// shellWords splits at blanks that are not between single quotes.
func shellWords(line string) []string {
	quoted := false
	return strings.FieldsFunc(strings.Map(func(c rune) rune {
		switch {
		case c == '\'':
			quoted = !quoted
			return 1
		case c == ' ' && !quoted:
			return 0
		}
		return c
	}, line), func(c rune) bool { return c <= 1 })
}
