package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/ownership"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

// A Cache keeps modules in a folder, each in a file that is named after its digest. For each source it also keeps a record of what the source last
// had. Several sources share a Cache, and several processes can. Files that other users could have written are not used. Files may be deleted at any
// time.
type Cache struct {
	folder string
	limit  int64
	places places
	wrong  error // why the folder can't be used, or nil

	mu     sync.Mutex
	inUse  map[any]map[string]bool // which modules each open source needs
	warned bool
}

const (
	cacheLimit  = 1 << 30 // bytes
	maxRecord   = 4 << 10 // bytes
	day         = 24 * time.Hour
	pullPrefix  = ".pull-"
	scratch     = ".scratch-"
	abandoned   = time.Hour // a scratch folder that is older was left by a process that was killed
	moduleEnd   = ".wasm"
	recordStart = "source-"
)

// A record is what a source last had.
type record struct {
	Reference string `json:"reference"` // the source's
	Manifest  string `json:"manifest"`  // digest of the artifact
	Module    string `json:"module"`    // digest of the module
	Size      int64  `json:"size"`      // size of the module, in bytes
	// Policy says whose signature was verified when the artifact was pulled. The record is ignored if a different signature is required now.
	Policy string `json:"policy,omitempty"`
}

// OpenCache opens the cache in a folder, which is created when it is needed. limit bounds the total size of the modules in bytes; 0 means 1 GiB.
// Modules of open sources count towards it, but are never removed. If the folder is "" or can't be used, nothing is kept: each time that a module is
// opened, it is pulled again.
func OpenCache(folder string, limit int64) *Cache {
	if limit <= 0 {
		limit = cacheLimit
	}
	c := &Cache{folder: folder, limit: limit, places: places{all: map[string]*place{}}, inUse: map[any]map[string]bool{}}
	if folder == "" {
		c.wrong = errors.New("there is no folder for it")
		return c
	}
	if c.wrong = os.MkdirAll(folder, 0o700); c.wrong == nil {
		c.wrong = ownership.Check(folder)
	}
	c.trim()
	return c
}

func (c *Cache) modulePath(digest string) string {
	return filepath.Join(c.folder, strings.TrimPrefix(digest, "sha256:")+moduleEnd)
}

func (c *Cache) recordPath(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(c.folder, recordStart+hex.EncodeToString(sum[:16])+".json")
}

// last returns what a source last had, if the cache still has it.
func (c *Cache) last(id string) (r record, ok bool) {
	if c.wrong != nil {
		return r, false
	}
	f, err := os.Open(c.recordPath(id))
	if err != nil {
		return r, false
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil || json.Unmarshal(content, &r) != nil || r.Reference != id || oci.CheckDigest(r.Module) != nil || oci.CheckDigest(r.Manifest) != nil || r.Size < 0 {
		return r, false
	}
	return r, c.has(r)
}

// has reports whether the cache has a file of a module's name and size. It does not read the file.
func (c *Cache) has(r record) bool {
	info, err := os.Stat(c.modulePath(r.Module))
	return c.wrong == nil && err == nil && info.Mode().IsRegular() && info.Size() == r.Size
}

// keep calls pull to write a module, and keeps the module. If the module can't be kept, keep still calls pull, so that the record r is correct, and
// returns kept as false. The module is not kept in memory instead: with many sources, there would be no bound.
func (c *Cache) keep(by *Source, pull func(io.Writer) (record, error), logger *slog.Logger) (r record, kept bool, err error) {
	wrong, err := c.write(by, func(w io.Writer) (module string, err error) {
		r, err = pull(w)
		return r.Module, err
	})
	switch {
	case wrong != nil:
		c.warn(logger, wrong)
		r, err = pull(io.Discard)
		return r, false, err
	case err == nil:
		c.note(r, logger)
	}
	return r, err == nil, err
}

// write calls pull to write a module, and keeps it under the digest that pull returns. wrong is the error of the disk, err the error of pull.
func (c *Cache) write(by any, pull func(io.Writer) (digest string, err error)) (wrong, err error) {
	if wrong = c.wrong; wrong == nil {
		wrong = os.MkdirAll(c.folder, 0o700) // somebody may have removed it
	}
	if wrong != nil {
		return wrong, nil
	}
	f, wrong := os.CreateTemp(c.folder, pullPrefix)
	if wrong != nil {
		return wrong, nil
	}
	disk := &writer{w: f}
	digest, err := pull(disk)
	if wrong = disk.failed; wrong == nil && err == nil {
		wrong = f.Sync()
	}
	wrong = errors.Join(wrong, f.Close())
	if wrong == nil && err == nil {
		c.use(by, digest)
		wrong = os.Rename(f.Name(), c.modulePath(digest))
	}
	if wrong != nil || err != nil {
		_ = os.Remove(f.Name())
	}
	return wrong, err
}

// Scratch makes a temporary folder, which the caller removes. It is in the cache, since a container with a read-only system has no other place. If
// the cache can't be written to or is full, it is among the system's temporary files.
func (c *Cache) Scratch() (string, error) {
	wrong := c.wrong
	if wrong == nil {
		wrong = os.MkdirAll(c.folder, 0o700)
	}
	if wrong == nil {
		var folder string
		if folder, wrong = roomy(c.folder); wrong == nil {
			return folder, nil
		}
	}
	folder, err := os.MkdirTemp("", "toolsrv"+scratch)
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", errors.Join(wrong, err))
	}
	return folder, nil
}

// roomy makes a scratch folder in another folder, if that has room for a small file.
func roomy(in string) (string, error) {
	folder, err := os.MkdirTemp(in, scratch)
	if err != nil {
		return "", err
	}
	probe := filepath.Join(folder, "probe")
	if err := errors.Join(os.WriteFile(probe, make([]byte, 64<<10), 0o600), os.Remove(probe)); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

// A writer remembers errors of the disk, to tell them from errors of the registry.
type writer struct {
	w      io.Writer
	failed error
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if err != nil {
		w.failed = err
	}
	return n, err
}

// note records what a source has.
func (c *Cache) note(r record, logger *slog.Logger) {
	content, err := json.Marshal(r)
	if err == nil {
		err = wholefile.Write(c.recordPath(r.Reference), content)
	}
	if err != nil {
		c.warn(logger, err)
	}
}

// warn logs once that modules are not kept.
func (c *Cache) warn(logger *slog.Logger, err error) {
	c.mu.Lock()
	before := c.warned
	c.warned = true
	c.mu.Unlock()
	if !before {
		logger.Warn("modules from registries are not kept on disk, so after a start none is served while its registry is unreachable", "folder", c.folder, "error", err)
	}
}

// use notes that a source needs a module, in addition to its earlier modules, which may still be read.
func (c *Cache) use(by any, module string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inUse[by] == nil {
		c.inUse[by] = map[string]bool{}
	}
	c.inUse[by][module] = true
}

// useOnly notes that a source needs these modules and no others.
func (c *Cache) useOnly(by any, modules ...string) {
	needs := make(map[string]bool, len(modules))
	for _, module := range modules {
		needs[module] = true
	}
	c.mu.Lock()
	c.inUse[by] = needs
	c.mu.Unlock()
	c.trim()
}

// release notes that a source no longer needs any module.
func (c *Cache) release(by any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inUse, by)
}

// trim removes the oldest modules beyond the limit, records without a module, and what interrupted pulls left behind.
func (c *Cache) trim() {
	if c.wrong != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	needed := map[string]bool{}
	for _, modules := range c.inUse {
		for module := range modules {
			needed[filepath.Base(c.modulePath(module))] = true
		}
	}
	files, err := os.ReadDir(c.folder)
	if err != nil {
		return // the next pull tries again
	}
	type module struct {
		name string
		size int64
		at   time.Time
	}
	var all []module
	var sum int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			continue
		}
		switch {
		case strings.HasSuffix(f.Name(), moduleEnd):
			sum += info.Size()
			all = append(all, module{f.Name(), info.Size(), info.ModTime()})
		case strings.HasPrefix(f.Name(), pullPrefix) && time.Since(info.ModTime()) > lookTimeout:
			_ = os.Remove(filepath.Join(c.folder, f.Name())) // left by a process that was killed, since no pull takes longer
		case strings.HasPrefix(f.Name(), scratch) && time.Since(info.ModTime()) > abandoned:
			_ = os.RemoveAll(filepath.Join(c.folder, f.Name()))
		case strings.HasPrefix(f.Name(), recordStart) && time.Since(info.ModTime()) > 365*day:
			_ = os.Remove(filepath.Join(c.folder, f.Name())) // most likely of a source that no longer exists
		}
	}
	slices.SortFunc(all, func(a, b module) int { return a.at.Compare(b.at) })
	for _, m := range all {
		if sum > c.limit && !needed[m.name] && os.Remove(filepath.Join(c.folder, m.name)) == nil {
			sum -= m.size
		}
	}
}

// open opens a module. The last Read fails if the content does not match the digest.
func (c *Cache) open(r record) (io.ReadCloser, error) {
	if c.wrong != nil {
		return nil, c.wrong
	}
	path := c.modulePath(r.Module)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Size() != r.Size || !info.Mode().IsRegular() {
		f.Close()
		_ = os.Remove(path)
		return nil, errors.Join(err, errDamaged)
	}
	return Verify(f, strings.TrimPrefix(r.Module, "sha256:"), func() error {
		_ = os.Remove(path)
		return errDamaged
	}), nil
}

// errDamaged means that a file in the cache does not match its digest.
var errDamaged = errors.New("the copy on disk is damaged: it is pulled again")
