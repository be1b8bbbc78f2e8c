package wasmtools_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// TestProgress lets Go functions report more often than reports are passed on, report senseless numbers, and report before they fail.
func TestProgress(t *testing.T) {
	t.Parallel()
	report := func(_ context.Context, call *wasmtools.Call, fails bool) (int, error) {
		call.Progress(math.NaN(), 1, "nothing")
		for _, done := range []float64{0, 1, 1, 2, 0.5, 4} {
			call.Progress(done, 4, "step")
		}
		if fails {
			return 0, errors.New("no")
		}
		return 4, nil
	}
	typed := gotool.NewWithCall("typed", "Report.", func(ctx context.Context, call *wasmtools.Call, in struct{ Fails bool }) (int, error) {
		return report(ctx, call, in.Fails)
	})
	plain := tool("", "plain")
	plain.Caller = wasmtools.CallerFunc(func(ctx context.Context, call *wasmtools.Call) ([]byte, error) {
		_, err := report(ctx, call, strings.Contains(string(call.Arguments), "true"))
		return []byte("4"), err
	})
	for _, tool := range []*wasmtools.Tool{typed, plain} {
		for _, arguments := range []string{`{"Fails": false}`, `{"Fails": true}`} {
			var heard lines
			_, err := tool.Call(t.Context(), &wasmtools.Call{Arguments: []byte(arguments), Listener: &heard})
			if got, want := strings.Join(heard, "; "), "0 of 4 step; 1 of 4 step; 2 of 4 step; 4 of 4 step"; got != want {
				t.Errorf("%s%s: heard %q, %v, want %q", tool.Name, arguments, got, err, want)
			}
			if _, err := tool.Call(t.Context(), &wasmtools.Call{Arguments: []byte(arguments)}); (err != nil) != strings.Contains(arguments, "true") {
				t.Errorf("%s%s: %v without a listener", tool.Name, arguments, err)
			}
		}
	}
}
