package broker_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// A sensorsRule is a grant of a program's own capability.
type sensorsRule struct{ sensors []string }

func (r *sensorsRule) Keys(string) key.Table {
	return key.Table{"x-sensors": key.Words(&r.sensors, key.Name)}
}

func (r *sensorsRule) Shown() []key.Shown { return []key.Shown{key.Listed("x-sensors", r.sensors)} }

// TestOwnSuggestion checks what is suggested to an operator for a program's own capability, and for an unknown one.
func TestOwnSuggestion(t *testing.T) {
	t.Parallel()
	sensors := capability.Kind{Name: "x-sensors", Module: "sensors_v1", New: func() capability.Rule { return &sensorsRule{} },
		Suggest: func(n wasmtools.Need) string { return key.Line("x-sensors", n.Words) }}
	needs := wasmtools.Needs{"kv": {}, "x-sensors": {Words: []string{"hall"}}, "x-other": {}}
	want := "[[grant]]\nmatch = \"house/*\"\nkv = \"16MiB\"\nx-sensors = [\"hall\"]\n# x-other = ...\n"
	if got := broker.Suggest("house/*", needs, builtin.With([]capability.Kind{sensors})); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := config.Parse([]byte("[[grant]]\nmatch = 'a'\nx-sensors = 1"), ""); err == nil || !strings.Contains(err.Error(), `unknown key`) {
		t.Errorf("a program without the capability accepts its key: %v", err)
	}
}
