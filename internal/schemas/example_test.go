package schemas_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

func ExampleSchema_Document() {
	walk := schemas.MustCompile(`{
		"type": "object",
		"properties": {"tree": {"$ref": "#/$defs/Tree"}},
		"$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}
	}`)
	root, definitions := walk.Document("fs-walk")
	fmt.Println(string(root))
	for name, definition := range definitions {
		fmt.Println(name, string(definition))
	}
	// Output:
	// {"type":"object","properties":{"tree":{"$ref":"#/components/schemas/fs-walk.Tree"}}}
	// fs-walk.Tree {"type":"array","items":{"$ref":"#/components/schemas/fs-walk.Tree"}}
}

// TestConcurrentUse uses one schema from many goroutines, for the race detector.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := schemas.MustCompile(`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"default":{},"properties":{"b":{"default":1,"pattern":"x"}}}}}`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				out, err := s.Validate(nil)
				if err != nil || string(out) != `{"a":{"b":1}}` {
					t.Errorf("got %s and %v", out, err)
				}
				if _, err := s.Validate([]byte(`{"a":{"b":"y"}}`)); err == nil {
					t.Error("accepted")
				}
				s.Document("x")
			}
		})
	}
	group.Wait()
}
