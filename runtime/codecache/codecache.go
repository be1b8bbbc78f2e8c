// Package codecache keeps compiled code on disk.
//
// Whoever reads an entry runs it as machine code, so an entry is given out only if it is whole, by its SHA-256, and if
// nobody but the process's user and root could have written it. What is in an entry is the caller's: the package knows
// nothing of compilers.
//
// Entries are replaced by renaming, so that processes can share a directory. They may be deleted at any time.
package codecache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/ownership"
)

// A Cache is a directory of entries. It is safe for concurrent use.
type Cache struct {
	dir     string
	limit   int64
	scratch string
	written atomic.Int64 // bytes of entries since they were last counted
}

// An entry is one file: a magic line, the SHA-256 of the key and what follows, the number of parts, the size of each, and the
// parts. The key keeps an entry from being taken for another in whose place somebody has put it.
const (
	entryMagic  = "toolsrv compiled code 3\n"
	entryHeader = len(entryMagic) + sha256.Size
	maxEntry    = 768 << 20 // bytes; the largest module makes about half of it
	maxParts    = 16

	defaultLimit = 2 << 30
	touchAge     = time.Hour // use is noted as often

	entryPrefix   = ".entry-"
	scratchPrefix = ".staging-"
	staleAge      = 24 * time.Hour // from which on a file was left by a process that ended without Close
)

// Open makes the directory where it is missing. limit bounds all entries together, in bytes; 2 GiB where it is 0 or less.
// A directory that others can change is an error that tells what to do.
func Open(dir string, limit int64) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory for compiled code: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for compiled code: %w", err)
	}
	if err := ownership.Check(dir); err != nil {
		return nil, fmt.Errorf("whoever can change compiled code can run code here: %w; or name a folder in it, which is made private", err)
	}
	if limit <= 0 {
		limit = defaultLimit
	}
	c := &Cache{dir: dir, limit: limit}
	c.written.Store(limit) // so that the first entry has all of them counted
	for _, prefix := range []string{entryPrefix, scratchPrefix} {
		removeStale(dir, prefix)
	}
	if c.scratch, err = makeScratch(dir); err != nil {
		return nil, err
	}
	return c, nil
}

// makeScratch makes a directory in which what is under way can be written: below dir, or where that is read-only or full,
// in the system's directory for temporary files.
func makeScratch(dir string) (string, error) {
	var errs []error
	for _, parent := range []string{dir, os.TempDir()} {
		err := ownership.Check(parent)
		if err == nil {
			var scratch string
			if scratch, err = tryScratch(parent); err == nil {
				return scratch, nil
			}
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("make a directory for code being compiled: %w", errors.Join(errs...))
}

// tryScratch makes a directory in parent, and makes sure that there is room for a page.
func tryScratch(parent string) (string, error) {
	scratch, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return "", err
	}
	probe := filepath.Join(scratch, "probe")
	if err := errors.Join(os.WriteFile(probe, make([]byte, 4096), 0o600), os.Remove(probe)); err != nil {
		return "", errors.Join(err, os.RemoveAll(scratch))
	}
	return scratch, nil
}

// Scratch returns a directory for this process alone, which Close removes. It is made anew where somebody has tidied it
// away; one that is not ours, in its place, is an error. It is to be asked for before each use.
func (c *Cache) Scratch() (string, error) {
	err := os.Mkdir(c.scratch, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(c.scratch)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "use", Path: c.scratch, Err: syscall.ENOTDIR}
	}
	return c.scratch, ownership.CheckFile(c.scratch, info)
}

// Close removes what belongs to this process. The entries stay.
func (c *Cache) Close() error { return os.RemoveAll(c.scratch) }

// removeStale removes what processes that ended without Close have left. One that still runs makes its own anew.
func removeStale(dir, prefix string) {
	old, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, path := range old {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleAge {
			os.RemoveAll(path)
		}
	}
}

// A Key names an entry.
type Key [sha256.Size]byte

// KeyOf returns the key of what is made of all parts: of the module, and of the versions of all that worked on it.
func KeyOf(parts ...string) (key Key) {
	h := sha256.New()
	io.WriteString(h, entryMagic) // an entry of another format is none, rather than a damaged one
	for _, p := range parts {
		fmt.Fprintf(h, "%d ", len(p))
		io.WriteString(h, p)
	}
	h.Sum(key[:0])
	return key
}

func (c *Cache) path(key Key) string { return filepath.Join(c.dir, hex.EncodeToString(key[:])) }

// Has reports whether there is an entry, by its looks: Get may still find it damaged. It counts as use.
func (c *Cache) Has(key Key) bool {
	path := c.path(key)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= int64(entryHeader) || ownership.CheckFile(path, info) != nil {
		return false
	}
	touch(path, info)
	return true
}

// touch notes that an entry is used.
func touch(path string, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > touchAge {
		// Without permission to, it only seems older than it is.
		_ = os.Chtimes(path, now, now)
	}
}

// Get returns the parts of an entry, or nil where there is none. A damaged entry is removed, and an error, as is one that
// others can change.
func (c *Cache) Get(key Key) ([][]byte, error) {
	path := c.path(key)
	// A FIFO would hold us until somebody writes to it, without O_NONBLOCK.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("compiled code %s is not a regular file", path)
	}
	if err := ownership.CheckFile(path, info); err != nil {
		return nil, err
	}
	var parts [][]byte
	if info.Size() <= maxEntry {
		content := make([]byte, info.Size())
		if _, err := io.ReadFull(f, content); err == nil {
			parts = parse(key, content)
		} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
	}
	if parts == nil {
		return nil, errors.Join(fmt.Errorf("compiled code %s is damaged", path), remove(path))
	}
	touch(path, info)
	return parts, nil
}

// parse returns the parts of an entry, if it is whole and that of the key, and nil otherwise.
func parse(key Key, content []byte) [][]byte {
	if len(content) < entryHeader+4 || string(content[:len(entryMagic)]) != entryMagic {
		return nil
	}
	rest := content[entryHeader:]
	h := sha256.New()
	h.Write(key[:])
	h.Write(rest)
	if !bytes.Equal(h.Sum(nil), content[len(entryMagic):entryHeader]) {
		return nil
	}
	n := binary.LittleEndian.Uint32(rest)
	rest = rest[4:]
	if n > maxParts || len(rest) < 8*int(n) {
		return nil
	}
	sizes, rest := rest[:8*n], rest[8*n:]
	parts := make([][]byte, n)
	for i := range parts {
		size := binary.LittleEndian.Uint64(sizes[8*i:])
		if size > uint64(len(rest)) {
			return nil
		}
		parts[i], rest = rest[:size:size], rest[size:]
	}
	return parts
}

// Put writes an entry aside and then moves it to its place, so that no other process sees half of it. What a power cut
// leaves of it is found by its SHA-256, so that it need not be flushed.
func (c *Cache) Put(key Key, parts ...[]byte) error {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(parts)))
	total := int64(entryHeader)
	for _, p := range parts {
		head = binary.LittleEndian.AppendUint64(head, uint64(len(p)))
		total += int64(len(p))
	}
	total += int64(len(head))
	if total > min(maxEntry, c.limit) {
		return fmt.Errorf("the entry has %d bytes, the limit is %d", total, min(maxEntry, c.limit))
	}
	aside, err := os.CreateTemp(c.dir, entryPrefix)
	if err != nil {
		return err
	}
	h := sha256.New()
	h.Write(key[:])
	h.Write(head)
	for _, p := range parts {
		h.Write(p)
	}
	_, err = aside.Write(append(h.Sum([]byte(entryMagic)), head...))
	for _, p := range parts {
		if err == nil {
			_, err = aside.Write(p)
		}
	}
	if err = errors.Join(err, aside.Close()); err == nil {
		err = os.Rename(aside.Name(), c.path(key))
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside.Name()))
	}
	// Counting all entries takes a look at each; a sixteenth of the limit may pass between.
	if c.written.Add(total) > c.limit/16 {
		c.written.Store(0)
		return c.trim()
	}
	return nil
}

// trim removes the entries that were not used for longest until the others take nine tenths of the limit.
func (c *Cache) trim() error {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var entries []fs.FileInfo
	var total int64
	for _, f := range files {
		if !isName(f.Name()) || !f.Type().IsRegular() {
			continue
		}
		if info, err := f.Info(); err == nil { // otherwise it is gone
			entries = append(entries, info)
			total += info.Size()
		}
	}
	if total <= c.limit {
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var errs []error
	for _, e := range entries {
		if total <= c.limit-c.limit/10 {
			break
		}
		errs = append(errs, remove(filepath.Join(c.dir, e.Name())))
		total -= e.Size()
	}
	return errors.Join(errs...)
}

// isName tells whether a file is named as entries are.
func isName(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == name
}

// remove is os.Remove, but for a file that is gone already: another process may do the same.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
