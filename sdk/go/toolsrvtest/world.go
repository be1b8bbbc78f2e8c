package toolsrvtest

import (
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/double"
)

// A World is what tools reach in a test, in place of what an operator grants:
//
//	world := &toolsrvtest.World{
//		HTTP:    http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"celsius": 21}`) }),
//		Secrets: map[string]string{"key": "0123456789"},
//	}
//	result, err := world.Call(t, module, "forecast", `{"city": "Paris"}`)
//
// A tool reaches only what it declares that it needs, as on a server: so a test finds a declaration that was forgotten. The zero World has
// nothing. Its fields must not be changed during a call; its methods can be called at the same time.
type World struct {
	// HTTP answers all requests, whose URLs are absolute. It is called by the tool's goroutine. [FailRequest] makes one fail. A redirect is returned
	// like any other answer, which is the default on a server.
	HTTP http.Handler
	// KV holds the keys and values of the tool. A test may look at it, and change it, between calls. What has expired is gone when the tool next looks.
	KV map[string][]byte
	// Secrets are the values of secrets, by their names.
	Secrets map[string]string
	// Settings are a JSON object. Defaults are filled in. The test fails if they don't fit the declared type.
	Settings string
	// Tools are what other tools do with their arguments, JSON, by their paths. A [*toolsrv.Failure] is the host's refusal, any other error
	// the tool's own.
	Tools map[string]func(arguments string) (result string, err error)
	// Files are the folders, by their names.
	Files map[string]fs.FS
	// Now is the time by which values in KV expire, [time.Now] if it is nil.
	Now func() time.Time

	mu      sync.Mutex
	kept    map[string]kept // what is known of the keys of KV
	version uint64          // the last version that was given
}

// Call is the function [Call], in this world.
func (w *World) Call(t testing.TB, m toolsrv.Module, tool, arguments string) (result string, err error) {
	t.Helper()
	_, result, err = w.Progress(t, m, tool, arguments)
	return result, err
}

// Progress is the function [Progress], in this world.
func (w *World) Progress(t testing.TB, m toolsrv.Module, tool, arguments string) (reports []Report, result string, err error) {
	t.Helper()
	parsed := parse(t, m)
	for _, candidate := range parsed.Tools {
		if candidate.Name != tool {
			continue
		}
		filled, err := newChecker(candidate.Parameters).check(arguments)
		if err != nil {
			return nil, "", err
		}
		needs := parsed.Needs.and(candidate.Needs)
		c := toolsrv.NewCall(func(level toolsrv.Level, message string) { t.Logf("%s: %s: %s", tool, level, message) })
		c = c.Reporting(func(done, total float64, message string) {
			if math.IsNaN(done) || math.IsInf(done, 0) || done < 0 || len(reports) > 0 && done <= reports[len(reports)-1].Done {
				t.Logf("%s: progress %v of %v, which a host drops: %s", tool, done, total, message)
				return
			}
			t.Logf("%s: progress %v of %v: %s", tool, done, total, message)
			reports = append(reports, Report{done, total, message})
		})
		c = c.WithHost(&host{world: w, needs: needs, settings: w.settings(t, needs)})
		out, err := m.Call(c.Until(time.Now().Add(timeout)), tool, filled)
		return reports, string(out), err
	}
	t.Fatalf("the module has no tool %q", tool)
	return nil, "", nil
}

// Examples is the function [Examples], in this world.
func (w *World) Examples(t *testing.T, m toolsrv.Module) {
	t.Helper()
	for _, tool := range parse(t, m).Tools {
		for i, example := range tool.Examples {
			t.Run(fmt.Sprintf("%s/%d", tool.Name, i+1), func(t *testing.T) {
				got, err := w.Call(t, m, tool.Name, string(example.Arguments))
				if err != nil {
					t.Fatalf("%s: %v", example.Arguments, err)
				}
				if example.Result != nil && !same(got, string(example.Result)) {
					t.Errorf("%s: got %s, want %s", example.Arguments, got, example.Result)
				}
			})
		}
	}
}

// settings returns what a tool reads of the settings, or nil where the operator would have to make some.
func (w *World) settings(t testing.TB, needs needs) []byte {
	t.Helper()
	if needs.Settings == nil {
		return nil
	}
	settings, err := newChecker(needs.Settings).check(w.Settings)
	if err != nil && w.Settings != "" {
		t.Fatalf("the settings don't fit the type that the module declares: %v", err)
	}
	if err != nil {
		return nil
	}
	return settings
}

// host is a world as one tool sees it.
type host struct {
	world    *World
	needs    needs
	settings []byte
}

var _ double.Host = (*host)(nil)

func failure(code, format string, args ...any) *toolsrv.Failure {
	return &toolsrv.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// undeclared is the failure of a use that the tool has not declared.
func undeclared(what string) *toolsrv.Failure {
	return failure("not_granted", "the tool uses %s, which it does not declare: add it to its Needs", what)
}

// missing is the failure of a use that the test has not provided for.
func missing(what string) *toolsrv.Failure {
	return failure("not_granted", "%s: the test's World does not have it", what)
}
