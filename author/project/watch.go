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

// A Watcher says when the sources of a project have changed. It compares names, sizes and modification times: of the few
// files of a project that takes some 0.1 ms, and works on every file system.
type Watcher struct {
	dir      string
	interval time.Duration
	most     int // files and folders
	seed     maphash.Seed
	told     uint64 // the state that Wait returned for
	started  bool
}

// Watch returns a Watcher of a project's folder that looks every interval. No sources are hidden files and folders,
// .wasm and .log files, and folders for what programs can make again (marked by a CACHEDIR.TAG: Cargo's target).
func Watch(dir string, interval time.Duration) *Watcher {
	return &Watcher{dir: dir, interval: interval, most: maxWatched, seed: maphash.MakeSeed()}
}

// Wait returns nil when the sources are not what they were when it last returned, and have been the same for an
// interval, so that a burst of saves is one change. The first call returns at once. Otherwise it returns ctx's error.
func (w *Watcher) Wait(ctx context.Context) error {
	var before uint64
	for first := true; ; first = false {
		begun := time.Now()
		now, err := w.look()
		if err != nil {
			return err
		}
		if !w.started || now != w.told && now == before && !first {
			w.told, w.started = now, true
			return nil
		}
		before = now
		pause := time.NewTimer(max(w.interval, 20*time.Since(begun))) // of many files, looking takes a while
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// look returns a fingerprint of the sources.
func (w *Watcher) look() (uint64, error) {
	root, err := filepath.EvalSymlinks(w.dir) // a link is not walked
	if err != nil {
		return 0, err
	}
	var h maphash.Hash
	h.SetSeed(w.seed)
	count := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if path == root {
			return err
		}
		if count++; count > w.most {
			return fmt.Errorf("%s has more than %d files: name the folder of one project", w.dir, w.most)
		}
		name := d.Name()
		switch {
		case d.IsDir() && (strings.HasPrefix(name, ".") || err != nil || hasFile(path, "CACHEDIR.TAG")):
			return fs.SkipDir
		case err != nil || d.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".wasm") || strings.HasSuffix(name, ".log"):
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
