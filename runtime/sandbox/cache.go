package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
)

// A codeCache keeps compiled code on disk. wazero's own cache checks its machine code only, by a CRC, and believes
// the rest of a file: lengths that it allocates, offsets that it jumps to. So wazero gets an empty directory of its
// own, and sees no file there that was not compared with its SHA-256 just before.
//
// An entry is one file: a magic line, the SHA-256 of what follows, the name that wazero gave its file, and the file.
// A codeCache is used by one compilation at a time.
type codeCache struct {
	dir     string // of the entries, kept
	staging string // wazero's, for this process
	files   string // where in staging wazero keeps its files
	wazero  wazero.CompilationCache
}

const (
	entryMagic  = "toolsrv compiled code 1\n"
	entryHeader = len(entryMagic) + sha256.Size
	entryName   = 2 * sha256.Size // wazero names a file by a SHA-256 in hexadecimal

	stagingPrefix = ".staging-"
)

// openCache makes the directory where it is missing.
func openCache(dir string) (*codeCache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for compiled code: %w", err)
	}
	removeStale(dir)
	// Below dir and not in the system's directory for temporary files, where it might be tidied away, and made
	// anew by somebody else.
	staging, err := os.MkdirTemp(dir, stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for code being compiled: %w", err)
	}
	c := &codeCache{dir: dir, staging: staging}
	if c.wazero, err = wazero.NewCompilationCacheWithDir(staging); err == nil {
		var made []os.DirEntry
		made, err = os.ReadDir(staging)
		if err == nil && len(made) != 1 {
			err = fmt.Errorf("wazero keeps its code in %d directories, not in one", len(made))
		}
		if err == nil {
			c.files = filepath.Join(staging, made[0].Name())
			return c, nil
		}
	}
	os.RemoveAll(staging)
	return nil, err
}

// removeStale removes what processes that ended without Close have left. One that still runs makes its own anew.
func removeStale(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, stagingPrefix+"*"))
	for _, path := range old {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(path)
		}
	}
}

// entry returns the file for the code of a module: another wazero, architecture or rewriter has another one.
func (c *codeCache) entry(module []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", filepath.Base(c.files), rewriteVersion)
	h.Write(module)
	return filepath.Join(c.dir, hex.EncodeToString(h.Sum(nil)))
}

// stage gives wazero the code of entry, and returns the name of the file, or "" where there is none. A damaged
// entry is removed, and an error.
func (c *codeCache) stage(entry string) (staged string, err error) {
	if err := os.MkdirAll(c.files, 0o700); err != nil {
		return "", err
	}
	content, err := os.ReadFile(entry)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name, code, ok := openEntry(content)
	if !ok {
		return "", errors.Join(fmt.Errorf("compiled code %s is damaged", entry), os.Remove(entry))
	}
	return name, os.WriteFile(filepath.Join(c.files, name), code, 0o600)
}

// openEntry returns what an entry holds, if it is whole.
func openEntry(content []byte) (name string, code []byte, ok bool) {
	if len(content) < entryHeader+entryName || string(content[:len(entryMagic)]) != entryMagic {
		return "", nil, false
	}
	if sum := sha256.Sum256(content[entryHeader:]); !bytes.Equal(sum[:], content[len(entryMagic):entryHeader]) {
		return "", nil, false
	}
	name = string(content[entryHeader : entryHeader+entryName])
	if raw, err := hex.DecodeString(name); err != nil || hex.EncodeToString(raw) != name {
		return "", nil, false
	}
	return name, content[entryHeader+entryName:], true
}

// collect makes what wazero has compiled the content of entry, and empties wazero's directory. What was staged and
// not used, because it is for another kind of processor, is replaced.
func (c *codeCache) collect(entry, staged string) error {
	files, err := os.ReadDir(c.files)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(c.files, f.Name())
		if f.Name() != staged && len(f.Name()) == entryName {
			errs = append(errs, keep(entry, f.Name(), path))
		}
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// keep writes an entry aside and then moves it to its place, so that no other process sees half of it.
func keep(entry, name, path string) error {
	code, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	body := append([]byte(name), code...)
	sum := sha256.Sum256(body)
	aside, err := os.CreateTemp(filepath.Dir(path), "entry-")
	if err != nil {
		return err
	}
	_, err = aside.Write(append(append([]byte(entryMagic), sum[:]...), body...))
	if err = errors.Join(err, aside.Close()); err == nil {
		err = os.Rename(aside.Name(), entry)
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside.Name()))
	}
	return nil
}

// close removes what belongs to this process.
func (c *codeCache) close() error { return os.RemoveAll(c.staging) }
