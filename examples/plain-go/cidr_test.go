package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestExamples runs the examples of the manifest.
func TestExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("tool.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Tools []struct {
			Examples []struct{ Arguments, Result json.RawMessage }
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	for i, example := range manifest.Tools[0].Examples {
		var out bytes.Buffer
		if err := run(bytes.NewReader(example.Arguments), &out); err != nil {
			t.Fatalf("example %d: %v", i+1, err)
		}
		var got, want any
		if json.Unmarshal(out.Bytes(), &got) != nil || json.Unmarshal(example.Result, &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("example %d: got %s, want %s", i+1, &out, example.Result)
		}
	}
}

// FuzzRun gives the program any input: JSON or an error.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"network":"10.0.0.0/8","split":9}`, `{"network":"::/0","split":-1}`, `{"network":"1.2.3.4 255.255.0.0"}`, `{"network":"::ffff:1.2.3.4/100","contains":["1.2.3.4"]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		var out bytes.Buffer
		if err := run(strings.NewReader(input), &out); err == nil && !json.Valid(out.Bytes()) {
			t.Errorf("%q: got %q, want JSON", input, &out)
		}
	})
}
