package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/codecache"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/touched"
)

// A Memory stores in a directory what helpers have collected for scripts, so that a server need not read the scripts again at its next start. It is
// safe for concurrent use.
type Memory struct {
	cache   *codecache.Cache
	program func() (string, error) // the digest of the program that collects

	mu      sync.Mutex
	folders map[string]names // a few folders that were listed last
}

// names are the names in a folder, by their stems.
type names struct {
	of     fs.FileInfo // the folder's information before it was listed
	byStem map[string][]string
}

// Bounds on what is stored. A script that exceeds them is read again at each start.
const (
	mostInputs  = 4000     // of a script
	mostNames   = 100_000  // in a folder
	mostFolders = 16       // folders whose names are remembered
	mostContent = 32 << 20 // bytes of all inputs
)

// OpenMemory opens a memory in the directory of compiled code; its files count towards that directory's limit. helper is the command that starts
// the Readers that use the memory: a different program finds no entries. The caller closes the Memory.
func OpenMemory(dir string, helper []string) (*Memory, error) {
	if len(helper) == 0 {
		return nil, errors.New("cache the files of scripts: there is no helper that reads scripts")
	}
	cache, err := codecache.Open(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("cache the files of scripts: %w", err)
	}
	return &Memory{cache: cache, program: sync.OnceValues(func() (string, error) { return digestOf(helper[0]) }), folders: map[string]names{}}, nil
}

// Close closes the memory. Its entries stay.
func (m *Memory) Close() error { return m.cache.Close() }

// digestOf returns the digest of a file.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return string(h.Sum(nil)), err
}

// kept is an entry: the files of a script, and what they were made from.
type kept struct {
	Files   []engine.File
	Inputs  []input
	Folders []input // digests of the names in folders that could have been found instead of an input
}

// An input is a file, or the fact that there is none.
type input struct {
	Path string
	Sum  []byte // nil: there was no file
}

func (m *Memory) key(root, path string) (codecache.Key, error) {
	program, err := m.program()
	return codecache.KeyOf("script", program, runtime.GOOS, root, path), err
}

// recall returns the stored files of a script, if everything that they were made from is unchanged.
func (m *Memory) recall(root, path string) (files []engine.File, inputs []string, ok bool) {
	key, err := m.key(root, path)
	if err != nil {
		return nil, nil, false
	}
	parts, err := m.cache.Get(key)
	var k kept
	if err != nil || len(parts) != 1 || gob.NewDecoder(bytes.NewReader(parts[0])).Decode(&k) != nil {
		return nil, nil, false
	}
	for _, in := range k.Inputs {
		inputs = append(inputs, in.Path)
	}
	now, folders, ok := m.look(root, inputs, time.Time{})
	same := func(a, b input) bool { return a.Path == b.Path && bytes.Equal(a.Sum, b.Sum) }
	if !ok || !slices.EqualFunc(now, k.Inputs, same) || !slices.EqualFunc(folders, k.Folders, same) {
		return nil, nil, false
	}
	return k.Files, inputs, true
}

// keep stores what a helper has collected; began is when the helper began. If something has changed since then, keep stores nothing, since the
// helper may have read it before the change.
func (m *Memory) keep(root, path string, began time.Time, files []engine.File, inputs []string) {
	key, err := m.key(root, path)
	if err != nil {
		return
	}
	now, folders, ok := m.look(root, inputs, began)
	if !ok {
		return
	}
	var text bytes.Buffer
	if gob.NewEncoder(&text).Encode(kept{files, now, folders}) == nil {
		_ = m.cache.Put(key, text.Bytes()) // the engine also keeps code there, and logs what is wrong
	}
}

// look returns the present state of inputs, and of those names in their folders that an import could also mean: if an import has no ending, a new
// file may be found instead of an old one. It returns false if there is too much to look at or, unless began is zero, if something was touched
// since then.
func (m *Memory) look(root string, inputs []string, began time.Time) (now, folders []input, ok bool) {
	root, err := filepath.Abs(root)
	if err != nil || len(inputs) > mostInputs {
		return nil, nil, false
	}
	left := int64(mostContent)
	stems := map[string]map[string]bool{} // by folders
	for _, path := range inputs {
		in, ok := lookAt(path, began, &left)
		if !ok {
			return nil, nil, false
		}
		now = append(now, in)
		for at := path; strings.HasPrefix(at, root+string(filepath.Separator)); at = filepath.Dir(at) {
			folder := filepath.Dir(at)
			if stems[folder] == nil {
				stems[folder] = map[string]bool{"node_modules": true}
			}
			stems[folder][stemOf(filepath.Base(at))] = true
		}
	}
	for folder, stems := range stems {
		sum, ok := m.namesIn(folder, stems, began)
		if !ok {
			return nil, nil, false
		}
		folders = append(folders, input{folder, sum})
	}
	slices.SortFunc(folders, func(a, b input) int { return strings.Compare(a.Path, b.Path) })
	return now, folders, true
}

// lookAt returns the present state of an input. If it is neither a file nor a folder, it is closed as soon as that is known.
func lookAt(path string, began time.Time, left *int64) (in input, ok bool) {
	in.Path = path
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return in, began.IsZero() || !parentTouched(path, began) // false if the file may have existed a moment ago
	}
	if err != nil {
		return in, false
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil, !began.IsZero() && touched.Since(info, began):
		return in, false
	case info.IsDir(): // the files in it that matter are inputs, too
		in.Sum = []byte("a folder")
		return in, true
	case !info.Mode().IsRegular() || info.Size() > *left:
		return in, false
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, *left))
	*left -= n
	in.Sum = h.Sum(nil)
	return in, err == nil && n == info.Size()
}

// parentTouched reports whether the nearest existing folder above a path was touched since a time.
func parentTouched(path string, began time.Time) bool {
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil {
			return touched.Since(info, began)
		}
		if filepath.Dir(at) == at {
			return true
		}
	}
}

// stemOf returns the name up to its first dot, not counting a dot at the beginning.
func stemOf(name string) string {
	if i := strings.IndexByte(name[min(1, len(name)):], '.'); i >= 0 {
		return name[:i+1]
	}
	return name
}

// namesIn returns the digest of the names in a folder that have one of the stems, or nil for a missing folder. It returns false if there are too
// many or, unless began is zero, if the folder was touched since then.
func (m *Memory) namesIn(folder string, stems map[string]bool, began time.Time) (sum []byte, ok bool) {
	info, err := os.Stat(folder)
	switch {
	case err != nil || !info.IsDir():
		return nil, true
	case !began.IsZero() && touched.Since(info, began):
		return nil, false
	}
	n, err := m.list(folder, info)
	if err != nil {
		return nil, false
	}
	h := sha256.New()
	for _, stem := range slices.Sorted(maps.Keys(stems)) {
		for _, name := range n.byStem[stem] {
			fmt.Fprintln(h, name)
		}
	}
	return h.Sum(nil), true
}

// list lists a folder. An earlier list is used again as long as the folder has not changed, since many scripts are in the same folder.
func (m *Memory) list(folder string, info fs.FileInfo) (names, error) {
	m.mu.Lock()
	n, ok := m.folders[folder]
	m.mu.Unlock()
	if ok && unchanged(n.of, info) {
		return n, nil
	}
	n = names{info, map[string][]string{}}
	f, err := os.Open(folder)
	if err != nil {
		return n, err
	}
	defer f.Close()
	entries, err := f.ReadDir(mostNames)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return n, err
	case len(entries) == mostNames:
		return n, errors.New("there are too many files in it")
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		stem := stemOf(e.Name())
		n.byStem[stem] = append(n.byStem[stem], fmt.Sprintf("%q %v", e.Name(), e.Type()))
	}
	if touched.Since(info, time.Now()) { // the folder may change once more without a new timestamp
		return n, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.folders) >= mostFolders {
		clear(m.folders)
	}
	m.folders[folder] = n
	return n, nil
}

// unchanged reports whether a folder has the same names as before.
func unchanged(before, now fs.FileInfo) bool {
	was, _ := touched.At(before)
	is, _ := touched.At(now)
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && was.Equal(is)
}
