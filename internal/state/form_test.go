package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
)

// TestForms reads records in each form, and leaves newer ones alone.
func TestForms(t *testing.T) {
	t.Parallel()
	record, err := state.Encode(2, map[string]int{"n": 7})
	if err != nil || string(record) != "\x02{\"n\":7}" {
		t.Fatalf("got %q, %v", record, err)
	}
	for _, test := range []struct {
		name   string
		record string
		known  byte
		want   string // of the error
	}{
		{"the same", string(record), 2, ""},
		{"an older one", string(record), 3, ""},
		{"a newer one", string(record), 1, "written by a newer version of toolsrv: its form is 2, but this version reads 1"},
		{"nothing", "", 2, "it has no form"},
		{"the form zero", "\x00{}", 2, "it has no form"},
		{"no form", `{"n":7}`, 2, "its form is 123"},
		{"no JSON", "\x02{", 2, "decode a record"},
		{"another type", "\x02[]", 2, "decode a record"},
	} {
		var v struct{ N int }
		err := state.Decode([]byte(test.record), test.known, &v)
		if test.want == "" {
			if err != nil || v.N != 7 {
				t.Errorf("%s: got %+v, %v", test.name, v, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, state.ErrNewer) != strings.Contains(test.want, "its form is") {
			t.Errorf("%s: got the error %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := state.Encode(1, func() {}); err == nil {
		t.Error("a function was encoded")
	}
}
