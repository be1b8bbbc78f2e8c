package nats_test

import (
	"strings"
	"testing"
)

// TestBucketPutLost lets somebody remove a content from the bucket that all servers have in their caches. Putting the same file again on one of them,
// as a new server's error advises, stores the content again.
func TestBucketPutLost(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one := startReplica(t, c.url(), nil)
	module := tool(t, "v0001", "math", 0, "add")
	if a := one.put("math/add.wasm", module); a.code != 200 {
		t.Fatal(a)
	}
	store, js := objectsOf(t, c)
	for name, spoil := range map[string]func() error{
		"deleted": func() error { return store.Delete(t.Context(), digestOf(module)) },
		"changed": func() error {
			_, err := store.PutBytes(t.Context(), digestOf(module), append([]byte("x"), module[1:]...))
			return err
		},
		"purged": func() error {
			stream, err := js.Stream(t.Context(), "OBJ_toolsrv_tools")
			if err == nil {
				err = stream.Purge(t.Context())
			}
			return err
		},
		"without its bucket": func() error { return js.DeleteObjectStore(t.Context(), "toolsrv_tools") },
	} {
		if a := one.put("math/add.wasm", module); a.code != 200 || !strings.Contains(a.body, `"changed":false`) {
			t.Errorf("%s: put the same file before: %v", name, a)
		}
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		if a := one.put("math/add.wasm", module); a.code != 200 || !strings.Contains(a.body, `"changed":true`) {
			t.Errorf("%s: put the same file: %v", name, a)
		}
		fresh := startReplica(t, c.url(), nil) // the replica's cache does not have the file
		served(t, []*replica{fresh}, "/math/add", "v0001")
		fresh.stop()
	}
}
