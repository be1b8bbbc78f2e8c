package toolfile_test

import (
	"encoding/json"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// manifest returns a manifest whose tools have these names and take any object.
func manifest(t testing.TB, namespace string, names ...string) string {
	t.Helper()
	m := wasmtools.Manifest{ABI: wasmtools.ABI, Namespace: namespace}
	for _, name := range names {
		m.Tools = append(m.Tools, wasmtools.ManifestTool{Name: name, Description: "Does " + name + ".", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
