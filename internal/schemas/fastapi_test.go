package schemas_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// TestFastAPI checks that our messages are exactly those of FastAPI.
func TestFastAPI(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("testdata", "fastapi", "answers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var answer struct {
			Schema json.RawMessage
			Body   string
			Detail []map[string]any
		}
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		s, err := schemas.CompileParameters(answer.Schema)
		if err != nil {
			t.Fatalf("%s: %v", answer.Schema, err)
		}
		_, err = s.Validate([]byte(answer.Body))
		text := violationsOf(t, err)
		var got []map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, answer.Detail) {
			t.Errorf("schema %s\nbody %s\ngot  %s\nwant %v", answer.Schema, answer.Body, text, answer.Detail)
		}
	}
}
