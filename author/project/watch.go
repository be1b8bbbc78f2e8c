package project

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxWatched is the largest number of files and folders that a Watcher looks at.
const maxWatched = 10_000

// A Watcher tells when the sources of a project have changed. It compares names, sizes and modification times: with
// the few files of a project that takes less than a notification by the system does to set up, and works everywhere.
type Watcher struct {
	dir      string
	interval time.Duration
	seed     maphash.Seed
	told     uint64 // the state that Wait returned for
	started  bool
}

// Watch returns a Watcher of a project's folder that looks every interval. No sources are hidden files and folders,
// .wasm files, and folders for what programs can make again (marked by a CACHEDIR.TAG: Cargo's target).
func Watch(dir string, interval time.Duration) *Watcher {
	return &Watcher{dir: dir, interval: interval, seed: maphash.MakeSeed()}
}

// Wait returns nil when the sources are not what they were when it last returned, and have been the same for an
// interval, so that a burst of saves is one change. The first call returns at once. Otherwise it returns ctx's error.
func (w *Watcher) Wait(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	var seen uint64
	for first := true; ; first = false {
		now, err := w.look()
		if err != nil {
			return err
		}
		if !w.started || now != w.told && now == seen && !first {
			w.told, w.started = now, true
			return nil
		}
		seen = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look returns a fingerprint of the sources.
func (w *Watcher) look() (uint64, error) {
	var h maphash.Hash
	h.SetSeed(w.seed)
	count := 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if path == w.dir {
			return err
		}
		if count++; count > maxWatched {
			return fmt.Errorf("%s has more than %d files: name the folder of one project", w.dir, maxWatched)
		}
		name := d.Name()
		switch {
		case d.IsDir() && (strings.HasPrefix(name, ".") || err != nil || hasFile(path, "CACHEDIR.TAG")):
			return fs.SkipDir
		case err != nil || d.IsDir() || strings.HasPrefix(name, ".") || filepath.Ext(name) == ".wasm":
			return nil
		}
		info, err := os.Stat(path) // through links
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		_, _ = h.WriteString(path)
		var numbers [17]byte // begins with a 0, which no path has
		binary.LittleEndian.PutUint64(numbers[1:], uint64(info.Size()))
		binary.LittleEndian.PutUint64(numbers[9:], uint64(info.ModTime().UnixNano()))
		_, _ = h.Write(numbers[:])
		return nil
	})
	return h.Sum64(), err
}

func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
