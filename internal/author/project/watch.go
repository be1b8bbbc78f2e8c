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

// maxWatched is how many files and folders a Watcher looks at.
const maxWatched = 10_000

// libraries are the folders that package managers and interpreters keep beside scripts.
var libraries = []string{"node_modules", "__pycache__"}

// A Watcher reports when the sources of a project have changed. It compares names, sizes and modification times, which works on every file system and
// takes some 0.1 ms for the few files of a project. It is not safe for concurrent use.
type Watcher struct {
	path     string   // the path of the folder, or of a single script
	inputs   []string // files that are watched wherever they are
	interval time.Duration
	most     int // files and folders
	seed     maphash.Seed
	told     uint64 // the fingerprint for which Wait last returned
	started  bool
}

// Watch returns a Watcher of a project's folder, or of a single script and what lies beside it. It looks every interval. It ignores hidden files and
// folders, .wasm and .log files, and folders that programs can make again: those with a CACHEDIR.TAG (such as Cargo's target), libraries, and
// Python's virtual environments.
func Watch(path string, interval time.Duration) *Watcher {
	return &Watcher{path: path, interval: interval, most: maxWatched, seed: maphash.MakeSeed()}
}

// Follow watches files that may lie anywhere, in place of those of an earlier Follow. Follow itself does not count as a change.
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
		return nil // a change that Wait has not reported yet
	}
	w.told, err = w.look()
	return err
}

// Wait returns nil once the sources have changed since it last returned, and have then stayed the same for an interval, so that a burst of saves is
// one change. The first call returns at once. If ctx ends first, Wait returns its error.
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
		pause := time.NewTimer(max(w.interval, 20*time.Since(begun))) // with many files, a look takes a while
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
		h.add(w.path) // does nothing if the script is missing for a moment, as while an editor saves it
		err := h.siblings(filepath.Dir(w.path))
		return h.Sum64(), err
	}
	root, err := filepath.EvalSymlinks(w.path) // WalkDir does not follow a link
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

// A fingerprint is a hash of names, sizes and modification times of files.
type fingerprint struct{ maphash.Hash }

// add adds a file, if it exists.
func (h *fingerprint) add(path string) {
	info, err := os.Stat(path) // through links
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	h.addInfo(path, info)
}

func (h *fingerprint) addInfo(path string, info fs.FileInfo) {
	_, _ = h.WriteString(path)
	var numbers [17]byte // begins with a 0 byte, which no path contains
	binary.LittleEndian.PutUint64(numbers[1:], uint64(info.Size()))
	binary.LittleEndian.PutUint64(numbers[9:], uint64(info.ModTime().UnixNano()))
	_, _ = h.Write(numbers[:])
}

// siblings adds what lies beside a script and may be needed by it: only scripts and folders, because people keep scripts anywhere.
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

// isOutput reports whether a file is output of toolsrv.
func isOutput(name string) bool {
	return strings.HasSuffix(name, ".wasm") || strings.HasSuffix(name, ".log")
}

// isMade reports whether programs can make a folder again.
func isMade(dir string) bool {
	return slices.Contains(libraries, filepath.Base(dir)) || hasFile(dir, "CACHEDIR.TAG") || hasFile(dir, "pyvenv.cfg")
}

func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
