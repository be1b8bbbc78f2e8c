package main_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// guestTools are the functions of testdata/e2e/guest.wat in the order of its table.
var guestTools = []string{"echo", "refuse", "reject", "trap", "spin", "recurse", "grow", "garble", "silent", "wait"}

// orderSchema is the schema of every tool in these tests, with a required member and one with a default.
const orderSchema = `{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer","minimum":1,"default":1}},"required":["item"]}`

// order is arguments that fit orderSchema and have all members, so no default is filled in.
const order = `{"item":"tea","count":2}`

// guest returns the module of testdata/e2e/guest.wat with a manifest whose tools have these names.
func guest(t *testing.T, namespace, version string, tools ...string) []byte {
	t.Helper()
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	said := struct {
		ABI       int    `json:"abi"`
		Namespace string `json:"namespace,omitempty"`
		Version   string `json:"version"`
		Tools     []tool `json:"tools"`
	}{ABI: manifest.ABI, Namespace: namespace, Version: version}
	for _, name := range tools {
		said.Tools = append(said.Tools, tool{name, "Does " + name + ".", json.RawMessage(orderSchema)})
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../testdata/e2e/guest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	module, err = wasmbin.SetCustom(module, manifest.Section, text)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
