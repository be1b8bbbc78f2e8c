package bucket

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
)

// The type nothing is a bucket without contents. These tests read none.
type nothing struct{ Objects }

// TestLargeRecords writes records that take much more memory than toolsrv's own, until they exceed the bound: the server applies some of the records,
// reports that the bound is exceeded, and still serves the file that was there before.
// Proves: Nothing stops the server
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	store := memory.New()
	space := store.Space(Space("tools"))
	set := func(name string, n int, paths string) {
		t.Helper()
		digest := fmt.Sprintf("%064x", n)
		record := fmt.Appendf(nil, "\x01"+`{"digest":%q,"kept":[{"digest":%q,"size":1,"since":"2026-11-27T12:00:00Z","paths":[%s]}]}`, digest, digest, paths)
		if _, err := space.Set(t.Context(), name, record, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	set("a.wasm", 1, `"/a"`)
	const records, paths = 40, 10_000
	for i := range records {
		set(fmt.Sprintf("f%d.wasm", i), 2+i, strings.Repeat(`"",`, paths-1)+`""`)
	}
	b := Open(Options{Name: "tools", Cache: registry.OpenCache("", 0), Versions: func() int { return 5 }})
	defer b.Close()
	b.most = 4 << 20
	b.Follow(space, nothing{})
	list, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const each = 16 * paths // bytes that a record takes
	if n := len(list.Entries); n < 10 || (n-1)*each > 4<<20 || list.Entries[0].ID != "a.wasm" || list.Entries[0].Err != nil {
		t.Errorf("it has %d records of %d, the first is %v", n, records, list.Entries[0])
	}
	if _, err := b.Collect(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "take more than 256 MiB") {
		t.Errorf("contents that no record names can be removed: %v", err)
	}
}
