package command

import (
	"encoding/json"
	"net"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

func TestSampleArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, want string }{
		{"nothing required", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{}`},
		{"each type", `{"required":["a","b","c","d","e","f","g"],"properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"number"},` +
			`"d":{"type":"boolean"},"e":{"type":"array"},"f":{"type":"object"},"g":{"type":["string","null"]}}}`,
			`{"a":"text","b":1,"c":1,"d":true,"e":[],"f":{},"g":1}`},
		{"members that the schema names", `{"required":["a","b","c","d","e"],"properties":{"a":{"const":7},"b":{"type":"string","default":"x"},` +
			`"c":{"enum":["one","two"]},"d":{"type":"string","examples":["like this"]},"e":{"type":"integer","minimum":5}}}`,
			`{"a":7,"b":"x","c":"one","d":"like this","e":5}`},
		{"a property that is not an object", `{"required":["a"],"properties":{"a":true}}`, `{}`},
		{"no properties", `{"required":["a"]}`, `{"a":1}`},
	} {
		parameters, err := schema.Compile(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := sampleArguments(&wasmtools.Tool{Parameters: parameters}); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCallAddress(t *testing.T) {
	t.Parallel()
	for listener, want := range map[string]string{
		"127.0.0.1:8000": "localhost:8000", "[::1]:80": "localhost:80", "0.0.0.0:1": "localhost:1", "[::]:2": "localhost:2",
		"192.0.2.7:8000": "192.0.2.7:8000", "[2001:db8::1]:8000": "[2001:db8::1]:8000",
	} {
		address, err := net.ResolveTCPAddr("tcp", listener)
		if err != nil {
			t.Fatal(err)
		}
		if got := callAddress(address); got != want {
			t.Errorf("%s: got %s, want %s", listener, got, want)
		}
	}
}
