package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// A codeCache keeps compiled code on disk. wazero's own cache checks its machine code only, by a CRC, and believes
// the rest of a file: lengths that it allocates, offsets that it jumps to. So wazero gets an empty directory of its
// own, and sees no file there that was not compared with its SHA-256 just before.
//
// A module that has no entry is compiled in a wazero runtime and a directory of its own, where the only file is its
// code; the engine's runtime never compiles, it only loads. So any number of modules can be compiled at a time.
//
// An entry is one file: a magic line, the SHA-256 of what follows, the name that wazero gave its file, and the file. Entries
// are replaced by renaming, so that processes can share the directory. A codeCache is safe for concurrent use.
type codeCache struct {
	dir     string // of the entries, kept
	limit   int64  // of all entries together, in bytes
	staging string // wazero's and ours, for this process
	files   string // where in staging wazero looks for its files
	host    string // tells apart versions of wazero, operating systems and processors
	config  wazero.RuntimeConfig
	wazero  wazero.CompilationCache
	written atomic.Int64 // bytes of entries since they were last counted
}

// A compiled is what wazero makes of a module: the file that it keeps, and the name that it gives it.
type compiled struct {
	name string
	code []byte
}

const (
	entryMagic  = "toolsrv compiled code 1\n"
	entryHeader = len(entryMagic) + sha256.Size
	entryName   = 2 * sha256.Size // wazero names a file by a SHA-256 in hexadecimal, and so do we
	maxEntry    = 512 << 20       // bytes; the largest module makes about half of it

	stagingPrefix = ".staging-"
	stagingAge    = 24 * time.Hour // from which on it was left by a process that ended without Close

	defaultCacheSize = 2 << 30
	touchAge         = time.Hour // use is noted as often
)

// openCache makes the directory where it is missing. config is that of the engine's runtime.
func openCache(dir string, limit int64, config wazero.RuntimeConfig) (*codeCache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory for compiled code: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for compiled code: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the directory for compiled code: %w", err)
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("the directory for compiled code, %s, is writable by everybody (%v), who could thereby run code here: chmod o-w it, or name a folder in it, which is made private", dir, mode)
	}
	removeStale(dir)
	// Below dir and not in the system's directory for temporary files, where it might be tidied away, and made
	// anew by somebody else.
	staging, err := os.MkdirTemp(dir, stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for code being compiled: %w", err)
	}
	if limit <= 0 {
		limit = defaultCacheSize
	}
	c := &codeCache{dir: dir, limit: limit, staging: staging, config: config}
	c.written.Store(limit) // so that the first entry has all of them counted
	if err := c.learn(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(staging))
	}
	return c, nil
}

// learn finds out where wazero looks for its files, and by a module without content how it names them.
func (c *codeCache) learn() (err error) {
	if c.wazero, c.files, err = newWazeroCache(c.staging); err != nil {
		return err
	}
	empty, err := c.make([]byte("\x00asm\x01\x00\x00\x00"), 1)
	if err != nil {
		return err
	}
	c.host = filepath.Base(c.files) + " " + empty.name
	return nil
}

// newWazeroCache returns wazero's cache for an empty directory, and the one that it makes in it for its files.
func newWazeroCache(dir string) (wazero.CompilationCache, string, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, "", err
	}
	made, err := os.ReadDir(dir)
	if err == nil && len(made) != 1 {
		err = fmt.Errorf("wazero keeps its code in %d directories, not in one", len(made))
	}
	if err != nil {
		return nil, "", errors.Join(err, cache.Close(context.Background()))
	}
	return cache, filepath.Join(dir, made[0].Name()), nil
}

// removeStale removes what processes that ended without Close have left. One that still runs makes its own anew.
func removeStale(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, stagingPrefix+"*"))
	for _, path := range old {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > stagingAge {
			os.RemoveAll(path)
		}
	}
}

// entry returns the file for the code of a module: another wazero, processor or rewriter has another one.
func (c *codeCache) entry(module []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", c.host, wasmbin.RewriterVersion)
	h.Write(module)
	return filepath.Join(c.dir, hex.EncodeToString(h.Sum(nil)))
}

// make compiles a module, with so many workers.
func (c *codeCache) make(module []byte, workers int) (made *compiled, err error) {
	if err := os.MkdirAll(c.staging, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.staging, "compile-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cache, files, err := newWazeroCache(dir)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, c.config.WithCompilationCache(cache))
	defer func() { err = errors.Join(err, r.Close(ctx), cache.Close(ctx)) }()
	if _, err := compileIn(r, module, workers); err != nil {
		return nil, err
	}
	kept, err := os.ReadDir(files)
	if err != nil {
		return nil, err
	}
	if len(kept) != 1 {
		return nil, fmt.Errorf("wazero keeps the code of a module in %d files, not in one", len(kept))
	}
	code, err := os.ReadFile(filepath.Join(files, kept[0].Name()))
	if err != nil {
		return nil, err
	}
	return &compiled{kept[0].Name(), code}, nil
}

// stage puts code where wazero looks for it, and returns the file, which the caller removes. Modules that differ in data
// only have the same code: who reads a file keeps it when another takes its place.
func (c *codeCache) stage(code *compiled) (string, error) {
	// The directory is there, unless somebody has tidied up.
	if err := os.MkdirAll(c.files, 0o700); err != nil {
		return "", err
	}
	aside, err := os.CreateTemp(c.files, "stage-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.files, code.name)
	_, err = aside.Write(code.code)
	if err = errors.Join(err, aside.Close()); err == nil {
		err = os.Rename(aside.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(aside.Name()))
	}
	return path, nil
}

// open returns what an entry holds, or nil where there is none. A damaged entry is removed, and an error.
func (c *codeCache) open(entry string) (*compiled, error) {
	// A FIFO would hold us until somebody writes to it, without O_NONBLOCK.
	f, err := os.OpenFile(entry, os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
		return nil, fmt.Errorf("compiled code %s is no regular file", entry)
	}
	var code *compiled
	if info.Size() <= maxEntry {
		content := make([]byte, info.Size())
		if _, err := io.ReadFull(f, content); err == nil {
			code = parseEntry(content)
		} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
	}
	if code == nil {
		return nil, errors.Join(fmt.Errorf("compiled code %s is damaged", entry), remove(entry))
	}
	if now := time.Now(); now.Sub(info.ModTime()) > touchAge {
		// Without permission to, it only seems older than it is.
		_ = os.Chtimes(entry, now, now)
	}
	return code, nil
}

// remove is os.Remove, but for a file that is gone already: another process may do the same.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// parseEntry returns what an entry holds, if it is whole, and nil otherwise.
func parseEntry(content []byte) *compiled {
	if len(content) < entryHeader+entryName || string(content[:len(entryMagic)]) != entryMagic {
		return nil
	}
	if sum := sha256.Sum256(content[entryHeader:]); !bytes.Equal(sum[:], content[len(entryMagic):entryHeader]) {
		return nil
	}
	name := string(content[entryHeader : entryHeader+entryName])
	if !isName(name) {
		return nil
	}
	return &compiled{name, content[entryHeader+entryName:]}
}

// isName tells whether s is a SHA-256 in hexadecimal.
func isName(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == s
}

// keep writes an entry aside and then moves it to its place, so that no other process sees half of it. What a power cut
// leaves of it is found by its SHA-256, so that it need not be flushed.
func (c *codeCache) keep(entry string, code *compiled) error {
	total := int64(entryHeader + entryName + len(code.code))
	if total > min(maxEntry, c.limit) {
		return fmt.Errorf("it has %d bytes, more than all of the cache may have, or one file in it (%d)", total, maxEntry)
	}
	if !isName(code.name) {
		return fmt.Errorf("wazero names it %q, which is no SHA-256", code.name)
	}
	aside, err := os.CreateTemp(c.staging, "entry-")
	if err != nil {
		return err
	}
	h := sha256.New()
	io.WriteString(h, code.name)
	h.Write(code.code)
	head := append(h.Sum([]byte(entryMagic)), code.name...)
	_, err = aside.Write(head)
	if err == nil {
		_, err = aside.Write(code.code)
	}
	if err = errors.Join(err, aside.Close()); err == nil {
		err = os.Rename(aside.Name(), entry)
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
func (c *codeCache) trim() error {
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

// close frees what belongs to this process.
func (c *codeCache) close(ctx context.Context) error {
	return errors.Join(c.wazero.Close(ctx), os.RemoveAll(c.staging))
}
