package kv_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
)

// TestRule reads how much may be kept, and whether each caller has its own values.
func TestRule(t *testing.T) {
	t.Parallel()
	type table = map[string]any
	for name, c := range map[string]struct {
		value any
		rule  kv.Rule
		want  string // the error
	}{
		"a size":                   {"1MiB", kv.Rule{Bytes: 1 << 20}, ""},
		"nothing":                  {int64(0), kv.Rule{}, ""},
		"a table":                  {table{"size": "1MiB"}, kv.Rule{Bytes: 1 << 20}, ""},
		"by principal":             {table{"size": int64(4096), "by": "principal"}, kv.Rule{Bytes: 4096, Own: true}, ""},
		"how many":                 {table{"size": "4KiB", "by": "principal", "principals": int64(7)}, kv.Rule{Bytes: 4096, Own: true, Principals: 7}, ""},
		"no size":                  {table{"by": "principal"}, kv.Rule{}, "is missing"},
		"by something else":        {table{"size": "1MiB", "by": "Principal"}, kv.Rule{}, `use "principal"`},
		"by nothing":               {table{"size": "1MiB", "by": ""}, kv.Rule{}, `use "principal"`},
		"principals without by":    {table{"size": "1MiB", "principals": int64(7)}, kv.Rule{}, `has an effect only with by`},
		"too many":                 {table{"size": "1MiB", "by": "principal", "principals": int64(100_001)}, kv.Rule{}, "1 to 100000"},
		"none":                     {table{"size": "1MiB", "by": "principal", "principals": int64(0)}, kv.Rule{}, "1 to 100000"},
		"a size that is too small": {table{"size": "1KiB"}, kv.Rule{}, "4KiB to"},
		"an unknown key":           {table{"size": "1MiB", "entries": int64(7)}, kv.Rule{}, "the keys are by, principals, size"},
		"a list":                   {[]any{"1MiB"}, kv.Rule{}, "must be"},
	} {
		var r kv.Rule
		err := r.Keys("")["kv"](c.value)
		if c.want == "" && (err != nil || r != c.rule) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %+v, %v, want %+v, %q", name, r, err, c.rule, c.want)
		}
	}
}
