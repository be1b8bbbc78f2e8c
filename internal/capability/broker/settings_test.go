package broker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestSettingsAreShared checks that many tools of one module, which have the same schema, share their settings: these can take a megabyte.
// Proves: Nothing without a grant
func TestSettingsAreShared(t *testing.T) {
	t.Parallel()
	g := grants(t, "[[grant]]\nmatch='a/own'\nsettings={units=\"miles\"}")
	schema := []byte(`{"type":"object","properties":{"units":{"default":"` + strings.Repeat("x", 100_000) + `"}}}`)
	first := settingsOf(t, g, "/a/b0", schema)
	for i := range 1000 {
		if other := settingsOf(t, g, fmt.Sprintf("/a/b%d", i), schema); &other[0] != &first[0] {
			t.Fatalf("tool %d has settings of its own", i)
		}
	}
	if own := settingsOf(t, g, "/a/own", schema); string(own) != `{"units":"miles"}` {
		t.Errorf("with another grant: got %s", own)
	}
	if other := settingsOf(t, g, "/a/b0", []byte(`{"type":"object"}`)); string(other) != "{}" {
		t.Errorf("with another schema: got %s", other)
	}
	if again := settingsOf(t, g, "/a/b0", schema); string(again) != string(first) {
		t.Errorf("got %.100s", again)
	}
}

// settingsOf returns the settings of a tool whose module declares a schema.
func settingsOf(t *testing.T, g *broker.Grants, path string, schema []byte) []byte {
	t.Helper()
	granted := g.For(path, wasmtools.Needs{"settings": {Object: schema}})
	if granted.Missing != nil {
		t.Fatalf("%s lacks %v", path, granted.Missing)
	}
	return granted.Settings
}
