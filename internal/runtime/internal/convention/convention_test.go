package convention_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/convention"
)

// TestResult makes tools end in every way, including some that their convention does not know.
func TestResult(t *testing.T) {
	t.Parallel()
	trap := errors.New("wasm error: unreachable")
	exit := func(code uint32) error {
		return fmt.Errorf("%w (recovered)", &hostcall.Exit{Code: code, Message: "why"})
	}
	for _, test := range []struct {
		call     string
		returned uint64
		err      error
		end      convention.End
		starved  bool
	}{
		{"toolsrv_call", 0, nil, convention.Done, false},
		{"toolsrv_call", 1, nil, convention.Reported, false},
		{"toolsrv_call", 2, nil, convention.Reported, true},
		{"toolsrv_call", 3, nil, convention.Wrong, true},
		{"toolsrv_call", 0xffffffff, nil, convention.Wrong, true},
		{"toolsrv_call", 1 << 32, nil, convention.Done, false}, // the upper half does not come from the guest
		{"toolsrv_call", 0, trap, convention.Broke, false},
		{"toolsrv_call", 0, exit(0), convention.Broke, false},
		{"_start", 0, nil, convention.Done, false},
		{"_start", 1, nil, convention.Done, false},
		{"_start", 0, exit(0), convention.Done, false},
		{"_start", 0, exit(7), convention.Failed, true},
		{"_start", 0, trap, convention.Broke, false},
	} {
		found := false
		for _, c := range convention.All() {
			if c.Call.Name != test.call {
				continue
			}
			found = true
			got := c.Result([]uint64{test.returned}, test.err)
			if got.End != test.end || got.Starved != test.starved {
				t.Errorf("%s, %d, %v: got %+v, want %d, %t", test.call, test.returned, test.err, got, test.end, test.starved)
			}
			if said := got.Message != ""; said != (got.End == convention.Reported || got.End == convention.Failed || got.End == convention.Wrong) {
				t.Errorf("%s, %d, %v: got the message %q", test.call, test.returned, test.err, got.Message)
			}
		}
		if !found {
			t.Errorf("no convention calls %s", test.call)
		}
	}
}
