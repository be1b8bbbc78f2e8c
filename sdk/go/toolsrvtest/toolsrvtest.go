// Package toolsrvtest calls tools in ordinary Go tests, without a server and without WebAssembly.
//
// Arguments are JSON. They are checked against the tool's schema and its defaults are filled in, as the server does.
// Then they are decoded, and the result is encoded, as in the sandbox:
//
//	func TestAdd(t *testing.T) {
//		result, err := toolsrvtest.Call(t, module, "add", `{"a": 1, "b": 2}`)
//		if err != nil || result != "3" {
//			t.Errorf("got %s, %v, want 3", result, err)
//		}
//	}
//
// What a tool reaches outside the sandbox is a [World] of the test's.
package toolsrvtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// manifest is what this package needs of a module's manifest.
type manifest struct {
	Needs needs
	Tools []struct {
		Name       string
		Needs      needs
		Parameters map[string]any
		Examples   []struct{ Arguments, Result json.RawMessage }
	}
}

// An ArgumentsError says that the server would refuse the arguments: the tool was not called.
type ArgumentsError struct {
	// Violations are all the reasons, each with its place, such as "items[0].price: is missing".
	Violations []string
}

// Error returns all violations.
func (e *ArgumentsError) Error() string { return fmt.Sprintf("invalid arguments: %q", e.Violations) }

// Manifest returns the module's manifest as the server reads it. It fails the test where the module can't be described.
func Manifest(t testing.TB, m toolsrv.Module) []byte {
	t.Helper()
	text, err := m.Manifest()
	if err != nil {
		t.Fatalf("the module can't be described: %v", err)
	}
	return text
}

// timeout is a server's default time limit.
const timeout = 5 * time.Second

// Call calls a tool of m with arguments, a JSON object, and returns its result, JSON. The tool's log lines and its progress go to the
// test's log. It sees a deadline in 5 s, a server's default, which is not enforced. The error is the tool's own, or an *[ArgumentsError]; [toolsrv.AsError] returns what a client would see.
func Call(t testing.TB, m toolsrv.Module, tool, arguments string) (result string, err error) {
	t.Helper()
	return new(World).Call(t, m, tool, arguments)
}

// A Report is what a call reports of its progress.
type Report struct {
	Done, Total float64
	Message     string
}

// Progress is [Call], and also returns what the tool reports of its progress. Reports that a host would drop because they make no
// sense are left out: those whose Done is less than 0, not finite, or not greater than before. A host also passes on no more than a few in a
// second, and cuts long messages; here all of them are returned as they are.
func Progress(t testing.TB, m toolsrv.Module, tool, arguments string) (reports []Report, result string, err error) {
	t.Helper()
	return new(World).Progress(t, m, tool, arguments)
}

// Examples runs each example of the manifest as a subtest: the call must succeed, and its result must be the example's.
func Examples(t *testing.T, m toolsrv.Module) {
	t.Helper()
	new(World).Examples(t, m)
}

func parse(t testing.TB, m toolsrv.Module) (out manifest) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(Manifest(t, m)))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("the manifest is broken: %v", err)
	}
	return out
}

// same reports whether two JSON texts have equal values.
func same(a, b string) bool {
	var x, y any
	err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y))
	return err == nil && reflect.DeepEqual(x, y)
}
