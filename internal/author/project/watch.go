package project

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/script"
)

// maxWatched is the largest number of files and folders that a Watcher looks at.
const maxWatched = 10_000

// libraries are folders of what package managers and interpreters keep beside scripts.
var libraries = []string{"node_modules", "__pycache__"}

// A Watcher says when the sources of a project have changed. It compares names, sizes and modification times: of the few
// files of a project that takes some 0.1 ms, and works on every file system. It is not safe for concurrent use.
type Watcher struct {
	path     string   // of the folder, or of a single script
	inputs   []string // files that count wherever they are
	interval time.Duration
	most     int // files and folders
	seed     maphash.Seed
	told     uint64 // the state that Wait returned for
	started  bool
}

// Watch returns a Watcher of a project's folder, or of a single script and what lies beside it, that looks every interval. No sources
// are hidden files and folders, .wasm and .log files, and folders for what programs can make again: those marked by a CACHEDIR.TAG
// (Cargo's target), libraries, and Python's virtual environments.
func Watch(path string, interval time.Duration) *Watcher {
	return &Watcher{path: path, interval: interval, most: maxWatched, seed: maphash.MakeSeed()}
}

// Follow watches files that may lie anywhere, in place of an earlier Follow's. That alone is not a change.
func (w *Watcher) Follow(files []string) error {
	if slices.Equal(files, w.inputs) {
		return nil
	}
	before, err := w.look()
	if err != nil {
		return err
	}
	w.inputs = slices.Clone(files)
	if before != w.told {
		return nil // a change that Wait has not told of yet
	}
	w.told, err = w.look()
	return err
}

// Wait returns nil when the sources have changed since it last returned, and then stayed the same for an interval, so that a burst of saves
// is one change. The first call returns at once. Otherwise it returns ctx's error.
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
	var h fingerprint
	h.SetSeed(w.seed)
	for _, file := range w.inputs {
		h.add(file)
	}
	if info, err := os.Stat(w.path); script.LanguageOf(w.path) != "" && (err != nil || !info.IsDir()) {
		h.add(w.path) // unless it is missing for a moment, as editors have it
		err := h.siblings(filepath.Dir(w.path))
		return h.Sum64(), err
	}
	root, err := filepath.EvalSymlinks(w.path) // a link is not walked
	if err != nil {
		return 0, err
	}
	count := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if path == root {
			return err
		}
		if count++; count > w.most {
			return fmt.Errorf("%s has more than %d files: name the folder of one project", w.path, w.most)
		}
		switch {
		case d.IsDir() && (err != nil || isHidden(d.Name()) || isMade(path)):
			return fs.SkipDir
		case err != nil || d.IsDir() || isHidden(d.Name()) || isOutput(d.Name()):
			return nil
		}
		h.add(path)
		return nil
	})
	return h.Sum64(), err
}

// A fingerprint is of names, sizes and modification times of files.
type fingerprint struct{ maphash.Hash }

// add adds a file, if there is one.
func (h *fingerprint) add(path string) {
	info, err := os.Stat(path) // through links
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	h.addInfo(path, info)
}

func (h *fingerprint) addInfo(path string, info fs.FileInfo) {
	_, _ = h.WriteString(path)
	var numbers [17]byte // begins with a 0, which no path has
	binary.LittleEndian.PutUint64(numbers[1:], uint64(info.Size()))
	binary.LittleEndian.PutUint64(numbers[9:], uint64(info.ModTime().UnixNano()))
	_, _ = h.Write(numbers[:])
}

// siblings adds what lies beside a script, since it may be what the script needs: the scripts and the folders, and no more than that,
// because people keep scripts anywhere.
func (h *fingerprint) siblings(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries[:min(len(entries), maxWatched)] {
		if isHidden(e.Name()) || slices.Contains(libraries, e.Name()) || !e.IsDir() && script.LanguageOf(e.Name()) == "" {
			continue
		}
		if info, err := e.Info(); err == nil {
			h.addInfo(e.Name(), info)
		}
	}
	return nil
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

// isOutput reports whether a file is what we make.
func isOutput(name string) bool {
	return strings.HasSuffix(name, ".wasm") || strings.HasSuffix(name, ".log")
}

// isMade reports whether a folder holds what programs can make again.
func isMade(dir string) bool {
	return slices.Contains(libraries, filepath.Base(dir)) || hasFile(dir, "CACHEDIR.TAG") || hasFile(dir, "pyvenv.cfg")
}

func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
