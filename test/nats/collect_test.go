package nats_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestCollectBehind removes unused contents while a node that has lost its data catches up. Contents that this node does not have yet still count as
// used.
func TestCollectBehind(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes hundreds of megabytes")
	}
	c := start(t, 3, nil)
	objects := open(t, c, nil).Objects("tools")
	const size = 4 << 20
	content := bytes.Repeat([]byte("tools in a bucket"), size/16)[:size]
	names := 0
	put := func() {
		t.Helper()
		eventually(t, "an object is put", func() bool {
			err := objects.Put(t.Context(), fmt.Sprint(names), bytes.NewReader(content))
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
		names++
	}
	put()
	c.stop(2)
	if err := os.RemoveAll(c.options[2].StoreDir); err != nil {
		t.Fatal(err)
	}
	for names < 40 {
		put()
	}
	c.run(t, 2)
	js, _ := raw(t, c)
	whole := func() bool {
		stream, err := js.Stream(t.Context(), "OBJ_toolsrv_tools")
		return err == nil && len(stream.CachedInfo().Cluster.Replicas) == 2 && !slices.ContainsFunc(stream.CachedInfo().Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Lag > 0 })
	}
	collected := 0
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && (collected < 10 || !whole()); collected++ {
		if removed, err := objects.Collect(t.Context(), 0, func(string) bool { return true }); err != nil || removed != 0 {
			t.Logf("removed %d, %v", removed, err)
		}
	}
	t.Logf("collected %d times", collected)
	for i := range names {
		got, err := objects.Get(t.Context(), fmt.Sprint(i), size)
		if err != nil {
			t.Fatalf("the object %d: %v", i, err)
		}
		read, err := io.ReadAll(got)
		if got.Close(); err != nil || !bytes.Equal(read, content) {
			t.Fatalf("%d: the object has %d bytes, %v", i, len(read), err)
		}
	}
}

// TestFirstObjects has three replicas put objects at once when there is no bucket for them yet: each replica tries to make it, and all objects are stored.
func TestFirstObjects(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	var all sync.WaitGroup
	for i := range 3 {
		s := open(t, c, patient)
		all.Go(func() {
			began := time.Now()
			name := fmt.Sprint(i)
			if err := s.Objects("tools").Put(t.Context(), name, strings.NewReader(name)); err != nil {
				t.Errorf("after %v: %v", time.Since(began).Round(time.Millisecond), err)
				return
			}
			got, err := s.Objects("tools").Get(t.Context(), name, 1)
			if err != nil {
				t.Error(err)
				return
			}
			defer got.Close()
			if read, err := io.ReadAll(got); err != nil || string(read) != name {
				t.Errorf("got %q, %v", read, err)
			}
		})
	}
	all.Wait()
}
