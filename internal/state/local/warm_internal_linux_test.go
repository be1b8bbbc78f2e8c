package local

import (
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/state"
)

// TestWarm reads a large record that is only on disk. The whole record must be in memory before anybody copies it: page faults during the copying
// would occupy a processor.
func TestWarm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("0123456789", state.MaxValue/10)
	if _, err := s.Space("a").Set(t.Context(), "k", []byte(value), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openBolt(filepath.Join(dir, FileName), false)
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	const dontNeed = 4
	if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, db.file.Fd(), 0, 0, dontNeed, 0, 0); e != 0 {
		t.Fatal(e)
	}
	if err := db.view(func(tx *bbolt.Tx) error {
		record := tx.Bucket(valuesOf("a")).Get([]byte("k"))
		missing := func() (n int) {
			page := uintptr(db.bolt.Info().PageSize)
			begin := reflect.ValueOf(record).Pointer() / page * page
			end := reflect.ValueOf(record).Pointer() + uintptr(len(record))
			pages := make([]byte, (end-begin+page-1)/page)
			if _, _, e := syscall.Syscall(syscall.SYS_MINCORE, begin, end-begin, reflect.ValueOf(pages).Pointer()); e != 0 {
				t.Fatal(e)
			}
			for _, p := range pages {
				n += int(1 - p&1)
			}
			return n
		}
		if missing() == 0 {
			t.Log("the file system keeps its files in memory")
		}
		db.warm(record)
		if n := missing(); n > 0 {
			t.Errorf("%d pages of %d bytes are not in memory", n, len(record))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
