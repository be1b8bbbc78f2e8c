// Package codecache keeps compiled code on disk.
//
// An entry is run as machine code. So the cache returns it only if its SHA-256 shows that it is intact, and if only the process's user or root could
// have written it. The caller decides what an entry contains: the package knows nothing of compilers.
//
// Entries are replaced by renaming files, so that processes can share a directory. They may be deleted at any time.
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
	"runtime"
	"slices"
	"strings"
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
	written atomic.Int64 // bytes of entries written since they were last counted
	sized   atomic.Pointer[sized]
}

// sized is the total size of all entries, and when they were counted.
type sized struct {
	at    time.Time
	bytes int64
}

// An entry is a file: a magic line, the SHA-256 of the key and of all that follows, the number of parts, the size of each, and the parts. Since the
// key is part of the sum, an entry in the place of another one is detected.
const (
	entryMagic  = "toolsrv compiled code 3\n"
	entryHeader = len(entryMagic) + sha256.Size
	maxEntry    = 768 << 20 // bytes; the largest module takes about half of that
	maxParts    = 16

	defaultLimit = 2 << 30
	touchAge     = time.Hour // an entry's time of last use is updated once it is older than this
	sizeAge      = time.Minute

	entryPrefix   = ".entry-"
	scratchPrefix = ".staging-"
	staleAge      = 24 * time.Hour // age of a temporary file whose process must have ended

	// lasting says whether the system refuses to replace or remove a file that is open.
	lasting = runtime.GOOS == "windows"
)

// Open opens the cache in a directory, which it makes if it is missing. limit bounds all entries together, in bytes; 0 or less means 2 GiB. If others
// can change the directory, the error says what to do.
func Open(dir string, limit int64) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory for compiled code: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = defaultLimit
	}
	c := &Cache{dir: dir, limit: limit}
	c.written.Store(limit) // so that the first Put counts all entries
	removeStale(dir)
	if c.scratch, err = makeScratch(dir); err != nil {
		return nil, err
	}
	return c, nil
}

// makeDir makes the directory of a cache if it is missing.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory for compiled code: %w", err)
	}
	if err := ownership.Check(dir); err != nil {
		return fmt.Errorf("anyone who can change compiled code can run code here: %w; or name a folder inside it, which will be made private", err)
	}
	return nil
}

// makeScratch makes a directory for unfinished files: in dir or, if dir is read-only or full, in the system's directory for temporary files.
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

// tryScratch makes a directory in parent, and checks that there is room for a page.
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

// Scratch returns a directory for this process alone, which Close removes. If the directory or the whole cache was removed, it is made again. If
// somebody else has made it instead, that is an error. Callers call Scratch before each use.
func (c *Cache) Scratch() (string, error) {
	err := os.Mkdir(c.scratch, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(c.scratch) == c.dir {
		if err := makeDir(c.dir); err != nil {
			return "", err
		}
		err = os.Mkdir(c.scratch, 0o700)
	}
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

// Close removes this process's files. The entries stay.
func (c *Cache) Close() error { return os.RemoveAll(c.scratch) }

// removeStale removes the files of processes that ended without Close. A process that is still running makes its directory again.
func removeStale(dir string) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), entryPrefix) && !strings.HasPrefix(f.Name(), scratchPrefix) {
			continue
		}
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > staleAge {
			os.RemoveAll(filepath.Join(dir, f.Name()))
		}
	}
}

// A Key names an entry.
type Key [sha256.Size]byte

// KeyOf returns the key for parts that determine an entry's content: the module, and the versions of everything that has processed it.
func KeyOf(parts ...string) (key Key) {
	h := sha256.New()
	io.WriteString(h, entryMagic) // so that an entry of another format is not found at all; otherwise it would seem damaged
	for _, p := range parts {
		fmt.Fprintf(h, "%d ", len(p))
		io.WriteString(h, p)
	}
	h.Sum(key[:0])
	return key
}

func (c *Cache) path(key Key) string { return filepath.Join(c.dir, hex.EncodeToString(key[:])) }

// Has reports whether there seems to be an entry: Get may still find that it is damaged. It marks the entry as used.
func (c *Cache) Has(key Key) bool {
	path := c.path(key)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= int64(entryHeader) || ownership.CheckFile(path, info) != nil {
		return false
	}
	touch(path, info)
	return true
}

// touch records that an entry is used.
func touch(path string, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > touchAge {
		// Without permission for that, the entry only seems older than it is.
		_ = os.Chtimes(path, now, now)
	}
}

// Get returns the parts of an entry, or nil if there is none. If the entry is damaged, Get removes it and returns an error. If others can change the
// entry, that is an error, too.
func (c *Cache) Get(key Key) ([][]byte, error) {
	path := c.path(key)
	// Without O_NONBLOCK, opening a FIFO would wait until somebody writes to it.
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
	if err := ownership.Check(c.dir); err != nil { // if the directory was removed, another user may have made it again
		return nil, err
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
		_ = f.Close() // closed before it is removed: Windows does not remove an open file
		return nil, errors.Join(fmt.Errorf("compiled code %s is damaged", path), remove(path))
	}
	touch(path, info)
	return parts, nil
}

// parse returns the parts of an entry, or nil if it is damaged or belongs to another key.
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

// Put writes an entry to a temporary file and then renames that, so that no process sees half of it. It does not flush the file: if a power failure
// damages it, its SHA-256 shows that.
func (c *Cache) Put(key Key, parts ...[]byte) error {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(parts)))
	total := int64(entryHeader)
	for _, p := range parts {
		head = binary.LittleEndian.AppendUint64(head, uint64(len(p)))
		total += int64(len(p))
	}
	total += int64(len(head))
	if total > min(maxEntry, c.limit) {
		return fmt.Errorf("the entry has %d bytes; the limit is %d", total, min(maxEntry, c.limit))
	}
	aside, err := os.CreateTemp(c.dir, entryPrefix)
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed
		if err := makeDir(c.dir); err != nil {
			return err
		}
		aside, err = os.CreateTemp(c.dir, entryPrefix)
	}
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
		if err != nil && lasting && c.Has(key) { // another process has written it and is reading it
			return os.Remove(aside.Name())
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside.Name()))
	}
	// Counting the entries has to examine each file, so it is done only once a sixteenth of the limit was written.
	if c.written.Add(total) > c.limit/16 {
		c.written.Store(0)
		return c.trim()
	}
	return nil
}

// trim removes the least recently used entries until the rest take at most nine tenths of the limit.
func (c *Cache) trim() error {
	entries, total, err := c.entries()
	if err != nil || total <= c.limit {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var errs []error
	for _, e := range entries {
		if total <= c.limit-c.limit/10 {
			break
		}
		err := remove(filepath.Join(c.dir, e.Name()))
		if err != nil && lasting { // it is being read: others are removed instead
			continue
		}
		errs = append(errs, err)
		total -= e.Size()
	}
	return errors.Join(errs...)
}

// entries returns the files of all entries, and their total size in bytes.
func (c *Cache) entries() (all []fs.FileInfo, total int64, err error) {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range files {
		if !isName(f.Name()) || !f.Type().IsRegular() {
			continue
		}
		if info, err := f.Info(); err == nil { // otherwise it has just been removed
			all = append(all, info)
			total += info.Size()
		}
	}
	return all, total, nil
}

// Size returns the total size of all entries in bytes, including those of other processes, and the limit. Counting has to examine each file, so the
// answer may be a minute old.
func (c *Cache) Size() (bytes, limit int64, err error) {
	if s := c.sized.Load(); s != nil && time.Since(s.at) < sizeAge {
		return s.bytes, c.limit, nil
	}
	_, bytes, err = c.entries()
	if err == nil {
		c.sized.Store(&sized{time.Now(), bytes})
	}
	return bytes, c.limit, err
}

// isName reports whether a file has the name of an entry.
func isName(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == name
}

// remove is os.Remove without an error if the file is gone already: another process may have removed it.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
