package lacking_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestOf describes everything that can be missing. The description of a tool that needs much is bounded, since its callers get it with every call.
func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		missing []wasmtools.Missing
		want    string
	}{
		{"nothing", nil, ""},
		{"not granted", []wasmtools.Missing{{Capability: "kv"}}, "kv"},
		{"two", []wasmtools.Missing{{Capability: "kv"}, {Capability: "http", Entry: "https://api.example.com"}}, "kv, http https://api.example.com"},
		{"a setting that is required", []wasmtools.Missing{{Capability: "settings", Detail: "units: Field required"}}, "settings (units: Field required)"},
		{"a setting that does not fit", []wasmtools.Missing{{Capability: "settings", Cause: wasmtools.Unusable, Match: "a/*", Detail: "units: wrong"}}, "settings (of the grant to a/*: units: wrong)"},
		{"a need that can't be used", []wasmtools.Missing{{Capability: "x-a", Cause: wasmtools.Unusable, Detail: "its need is not a list"}}, "x-a (its need is not a list)"},
		{"no such capability", []wasmtools.Missing{{Capability: "x-a", Cause: wasmtools.NoCapability}}, "x-a (this server does not have it)"},
		{"no state", []wasmtools.Missing{{Capability: "kv", Cause: wasmtools.NoState}}, "kv (it is granted, but [state] names no directory)"},
		{"no secret", []wasmtools.Missing{{Capability: "secrets", Entry: "a", Cause: wasmtools.NoSecret}}, "secrets a (no source in [secrets] has it)"},
		{"no secret for a header", []wasmtools.Missing{{Capability: "http", Cause: wasmtools.NoSecret, Line: 3}}, "http (the secret of ${secret:...} in the headers of its grant (line 3): no source in [secrets] has it)"},
		{"no secret for a header, and no line", []wasmtools.Missing{{Capability: "http", Cause: wasmtools.NoSecret}}, "http (the secret of ${secret:...} in the headers of its grant: no source in [secrets] has it)"},
	} {
		if got := lacking.Of(&wasmtools.Tool{Missing: test.missing}); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	much := &wasmtools.Tool{Missing: make([]wasmtools.Missing, 100)}
	for i := range much.Missing {
		much.Missing[i] = wasmtools.Missing{Capability: "http", Entry: "https://a.example"}
	}
	if got := lacking.Of(much); !strings.HasPrefix(got, "http https://a.example, ") || len(got) > 1100 {
		t.Errorf("much: got %d bytes %q", len(got), got)
	}
}
