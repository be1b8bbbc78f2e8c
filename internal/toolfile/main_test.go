package toolfile_test

import (
	"encoding/json"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
)

// manifestText returns a manifest whose tools have these names and accept any object.
func manifestText(t testing.TB, namespace string, names ...string) string {
	t.Helper()
	m := manifest.Manifest{ABI: manifest.ABI, Namespace: namespace}
	for _, name := range names {
		m.Tools = append(m.Tools, manifest.Tool{Name: name, Description: "Does " + name + ".", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
