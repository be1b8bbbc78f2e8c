package toolfile_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// lines is a listener that counts log lines.
type lines map[string]int

func (l lines) Log(level slog.Level, source, line string) {
	l[fmt.Sprintf("%s %s: %s", level, source, line)]++
}

func (l lines) Progress(done, total float64, message string) {
	l[fmt.Sprintf("%v of %v: %s", done, total, message)]++
}

// TestListenerHearsGuest checks that a listener gets what a guest logs during its call, within the tool's limit.
func TestListenerHearsGuest(t *testing.T) {
	t.Parallel()
	m := built(t, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/hostile/log"), manifestText(t, "", "a", "b", "c", "d", "noisy")), limits.Limits{LogLines: 20})
	v, route := invoker.New(invoker.Options{}), invoker.RouteTo(m.Tools()[4])
	heard, other := lines{}, lines{}
	for _, l := range []wasmtools.Listener{heard, nil, other} {
		if _, err := v.Call(t.Context(), route, &wasmtools.Call{Principal: wasmtools.Self(), Listener: l}); err != nil {
			t.Fatal(err)
		}
	}
	if len(heard) != 1 || heard["WARN log: line"] != 20 || len(other) != 1 || other["WARN log: line"] != 20 {
		t.Errorf("heard %v and %v", heard, other)
	}
}
