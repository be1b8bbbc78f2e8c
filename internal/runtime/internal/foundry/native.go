package foundry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/internal/runtime/codecache"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// A Native is a module as machine code, ready to be instantiated.
type Native struct {
	Code      wazero.CompiledModule // nil: it is in the cache, and was not loaded
	Runtime   wazero.Runtime
	Rewritten *instrument.Rewritten // without Module
	size      int64                 // what it takes in memory, in bytes, with the data segments
	stored    bool                  // the cache has it, too
}

// mappings returns how many of the process's mappings the code uses.
func (n *Native) mappings() int64 {
	if n.Code == nil {
		return 0
	}
	return 1
}

// A furnace makes machine code of modules. It is safe for concurrent use.
//
// wazero's own cache checks only the machine code in a file, by a CRC. It trusts everything else: lengths that it allocates, offsets that it jumps
// to. So the runtime that loads code has a directory of its own, and each file in it was verified just before. A module that is not in the cache is
// compiled in a runtime and a directory of its own, where the only file is its code. So any number of modules can be compiled at a time.
//
// Without a cache, and while the cache's disk can't be written to, modules are compiled in a runtime whose code stays in memory.
type furnace struct {
	log     *slog.Logger
	config  wazero.RuntimeConfig
	workers int                                         // workers that compile one module
	furnish func(context.Context, wazero.Runtime) error // adds the host's functions
	plain   func() (wazero.Runtime, error)              // the runtime of code that stays in memory, made when first needed
	used    atomic.Pointer[wazero.Runtime]              // plain's
	pool    *compile.Pool                               // nil: modules are compiled in this process
	claim   claim                                       // makes room for the memory that a process of the pool may use
	barred  barred                                      // modules that must not be compiled
	cache   *codecache.Cache                            // nil: no cache, and none of the following
	loader  wazero.Runtime                              // the runtime of code from the cache
	loads   wazero.CompilationCache                     // the loader's
	turns   [64]sync.Mutex                              // locks for loading modules, chosen by their sums
	files   string                                      // where the loader looks for files, below the cache's scratch directory
	host    string                                      // version of wazero, operating system and processor
	failed  atomic.Int64                                // when the disk last failed, in Unix nanoseconds
	// Problems with the cache concern all modules alike.
	notUsed, notKept, notApart, notPossible *trouble.Recurring
}

// troubleTime is how long a disk is not used after a failure.
const troubleTime = time.Minute

// newFurnace returns a furnace. claimFor is the Foundry's method.
func newFurnace(ctx context.Context, c Config, claimFor func(tight bool) claim, config wazero.RuntimeConfig) (*furnace, error) {
	log := c.Logger
	f := &furnace{log: log, config: config, workers: c.CompileWorkers, furnish: c.Furnish}
	begins := func(what, over string) *trouble.Recurring {
		return trouble.NewRecurring(log, slog.LevelWarn, what, over)
	}
	f.notUsed = begins("compiled code on disk is not used", "compiled code is used again")
	f.notKept = begins("compiled code is kept in memory, not on disk", "compiled code is kept on disk again")
	f.notApart = begins("modules are compiled in this process: what each takes is predicted, but not bounded", "modules are compiled in separate processes again")
	f.notPossible = begins("compiled code can't be stored on disk: it stays in memory, and is compiled again after a restart", "the disk of compiled code can be used again")
	f.plain = sync.OnceValues(func() (wazero.Runtime, error) {
		r := wazero.NewRuntimeWithConfig(context.WithoutCancel(ctx), f.config)
		f.used.Store(&r)
		return r, f.furnish(context.WithoutCancel(ctx), r)
	})
	if len(c.CompileHelper) > 0 {
		p, tight, err := newPool(c)
		if err != nil {
			f.notApart.Add(err)
		}
		f.pool, f.claim = p, claimFor(tight)
	}
	if c.CacheDir != "" {
		if err := f.open(ctx, c); err != nil {
			// The key belongs to the server's configuration, but nobody else logs this for operators.
			log.Warn("compiled code is not kept on disk: every start compiles all tools again; set tools.cache_directory to another folder", "error", err)
		}
	}
	if f.cache == nil { // open has not made the host functions: make them here, so that an error shows now
		if _, err := f.plain(); err != nil {
			return nil, errors.Join(err, f.close(ctx))
		}
	}
	return f, nil
}

// open opens the cache, and makes the runtime that loads from it. It compiles an empty module to learn how wazero names its files.
func (f *furnace) open(ctx context.Context, c Config) (err error) {
	if f.cache, err = codecache.Open(c.CacheDir, c.CacheSize); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close(ctx))
			f.cache = nil
		}
	}()
	scratch, err := f.cache.Scratch()
	if err != nil {
		return err
	}
	loads, files, err := newWazeroCache(scratch)
	if err != nil {
		return err
	}
	f.loads, f.files = loads, filepath.Base(files)
	empty, err := compile.Here(scratch, []byte("\x00asm\x01\x00\x00\x00"), 1)
	if err != nil {
		return err
	}
	f.host = f.files + " " + empty.Name
	f.loader = wazero.NewRuntimeWithConfig(ctx, f.config.WithCompilationCache(f.loads))
	return f.furnish(ctx, f.loader)
}

// close frees everything. Nothing may be running any more.
func (f *furnace) close(ctx context.Context) error {
	var errs []error
	if f.pool != nil {
		f.pool.Close()
	}
	if r := f.used.Load(); r != nil {
		errs = append(errs, (*r).Close(ctx))
	}
	if f.loader != nil {
		errs = append(errs, f.loader.Close(ctx))
	}
	if f.loads != nil {
		errs = append(errs, f.loads.Close(ctx))
	}
	if f.cache != nil {
		if err := f.cache.Close(); err != nil { // not an error of the engine
			f.log.Warn("the cache of compiled code could not remove its temporary files", "error", err)
		}
	}
	return errors.Join(errs...)
}

// key returns the key under which the cache keeps a module's entry of a kind. It differs between versions of wazero and of the rewriter, and
// between kinds of processors.
func (f *furnace) key(of sum, about ...string) codecache.Key {
	return codecache.KeyOf(append([]string{f.host, fmt.Sprint(instrument.RewriterVersion), string(of[:])}, about...)...)
}

// What the cache stores about a module besides its code.
const (
	aboutBound       = "barred"      // why it must not be compiled
	aboutDescription = "description" // its description of itself
)

// has reports whether the cache has code for a module.
func (f *furnace) has(of sum) bool { return f.cache != nil && f.cache.Has(f.key(of)) }

// failing reports whether the disk failed a short while ago.
func (f *furnace) failing() bool {
	since := f.failed.Load()
	return since != 0 && time.Now().UnixNano()-since < int64(troubleTime)
}

// The parts of an entry.
const (
	partAbout  = iota // an about, in JSON
	partModule        // the module that wazero is given
	partName          // of wazero's file
	partCode          // wazero's file
	partData          // contents of the data segments, one after the other
	entryParts
)

// An about is what the host needs to know about a module besides its code. The contents of its data segments are in another part.
type about struct {
	instrument.Rewritten
	Segments [][2]uint32 // offset and length
}

// load returns a module's code from the cache, or nil if the cache has none.
func (f *furnace) load(of sum) (*Native, error) {
	parts, err := f.cache.Get(f.key(of))
	if parts == nil || err != nil {
		return nil, err
	}
	if len(parts) != entryParts {
		return nil, fmt.Errorf("an entry has %d parts, not %d", len(parts), entryParts)
	}
	var a about
	if err := json.Unmarshal(parts[partAbout], &a); err != nil {
		return nil, fmt.Errorf("read an entry: %w", err)
	}
	r := &a.Rewritten
	data := slices.Clone(parts[partData]) // so that the rest can be freed
	for _, d := range a.Segments {
		if uint64(d[1]) > uint64(len(data)) {
			return nil, errors.New("an entry has less data than it says")
		}
		r.Data = append(r.Data, instrument.DataSegment{Offset: d[0], Content: data[:d[1]:d[1]]})
		data = data[d[1]:]
	}
	return f.hand(of, parts[partModule], compile.File{Name: string(parts[partName]), Code: parts[partCode]}, r)
}

// keep puts a module's code into the cache.
func (f *furnace) keep(of sum, module []byte, m compile.File, r *instrument.Rewritten) error {
	a := about{Rewritten: *r}
	var data []byte
	for _, d := range r.Data {
		a.Segments = append(a.Segments, [2]uint32{d.Offset, uint32(len(d.Content))})
		data = append(data, d.Content...)
	}
	a.Module, a.Data = nil, nil
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return f.cache.Put(f.key(of), text, module, []byte(m.Name), m.Code, data)
}

// compile compiles a module. It loads the code only if needed returns true, or if the cache did not take the code.
func (f *furnace) compile(of sum, parsed *wasmbin.Module, needed func() bool) (*Native, error) {
	r, err := instrument.Rewrite(parsed)
	if err != nil {
		return nil, err
	}
	// wazero shares the code of modules whose bytes are equal, and writes to what it shares while others use it. Two modules that differ only in their
	// data, which Rewrite removes, would be equal. The sum makes them different.
	module := wasmbin.AppendCustom(r.Module, "toolsrv.sum", of[:])
	r.Module = nil
	for i := range r.Data { // so that the source can be freed
		r.Data[i].Content = slices.Clone(r.Data[i].Content)
	}
	most := limitOf(r)
	if f.cache != nil && !f.failing() {
		n, err := f.compileStored(of, module, &most, r, needed)
		if err == nil || !errors.Is(err, compile.ErrDisk) {
			return n, err
		}
		f.failed.Store(time.Now().UnixNano())
		f.notPossible.Add(err)
	}
	_, tried, err := f.apart(of, "", module, &most) // only a module that was seen to stay within its limits is compiled here
	if err != nil {
		return nil, err
	}
	if tried {
		give, err := f.claim(most.Bytes, most.Bytes > limitOf(r).Bytes)
		if err != nil {
			return nil, err
		}
		defer give()
	}
	plain, err := f.plain()
	if err != nil {
		return nil, err
	}
	code, err := compileIn(plain, module, f.workers)
	if err != nil {
		return nil, err
	}
	return &Native{Code: code, Runtime: plain, Rewritten: r, size: int64(codeFactor*len(module) + dataSize(r))}, nil
}

// dataSize returns the size in bytes of a module's data segments, which are kept as long as its code.
func dataSize(r *instrument.Rewritten) (size int) {
	for _, d := range r.Data {
		size += len(d.Content)
	}
	return size
}

// codeFactor is an estimate of what a module's code takes, including what else wazero keeps, as a multiple of the module's size.
const codeFactor = 6

// compileStored is compile through the disk.
func (f *furnace) compileStored(of sum, module []byte, most *compile.Limit, r *instrument.Rewritten, needed func() bool) (*Native, error) {
	m, err := f.make(of, module, most)
	if err != nil {
		return nil, err
	}
	stored := true
	if err := f.keep(of, module, m, r); err != nil {
		f.notKept.Add(err)
		stored = false
	} else {
		f.notKept.Over()
		f.notPossible.Over()
		f.notUsed.Over()
	}
	if stored && !needed() {
		return &Native{stored: true}, nil
	}
	n, err := f.hand(of, module, m, r)
	if err == nil {
		n.stored = stored
	}
	return n, err
}

// newWazeroCache returns wazero's cache in an empty directory, and the directory that wazero has made there for its files.
func newWazeroCache(dir string) (wazero.CompilationCache, string, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, "", err
	}
	inside, err := os.ReadDir(dir)
	if err == nil && len(inside) != 1 {
		err = fmt.Errorf("wazero stores its code in %d directories, not in one", len(inside))
	}
	if err != nil {
		return nil, "", errors.Join(err, cache.Close(context.Background()))
	}
	return cache, filepath.Join(dir, inside[0].Name()), nil
}

// make compiles a module, in a separate process if there can be one. An error that is not the module's fault is temporary, or ErrClosed.
func (f *furnace) make(of sum, module []byte, most *compile.Limit) (compile.File, error) {
	scratch, err := f.cache.Scratch()
	if err != nil {
		return compile.File{}, fmt.Errorf("%w: %w", compile.ErrDisk, err)
	}
	if made, done, err := f.apart(of, scratch, module, most); done {
		return made, err
	}
	return compile.Here(scratch, module, f.workers)
}

// hand makes wazero load code. The error is compile.ErrDisk, or the module's own. A module that was closed may be loaded again while its earlier
// load still runs. wazero would then give the second caller code that is not complete yet, so the second load waits for the first.
func (f *furnace) hand(of sum, module []byte, m compile.File, r *instrument.Rewritten) (*Native, error) {
	turn := &f.turns[int(of[0])%len(f.turns)]
	turn.Lock()
	defer turn.Unlock()
	staged, err := f.stage(m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", compile.ErrDisk, err)
	}
	code, err := loadIn(f.loader, module)
	if gone := os.Remove(staged); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		f.notUsed.Add(gone)
	}
	if err != nil {
		return nil, err
	}
	return &Native{Code: code, Runtime: f.loader, Rewritten: r, size: int64(len(m.Code) + len(module) + dataSize(r)), stored: true}, nil
}

// stage writes code to the file where the loader looks for it, and returns the file's path, for the caller to remove. If a file of that name is being
// read, its reader keeps the old one.
func (f *furnace) stage(m compile.File) (string, error) {
	if m.Name != filepath.Base(m.Name) {
		return "", fmt.Errorf("wazero's file is named %q", m.Name)
	}
	scratch, err := f.cache.Scratch()
	if err != nil {
		return "", err
	}
	files := filepath.Join(scratch, f.files)
	if err := os.MkdirAll(files, 0o700); err != nil {
		return "", err
	}
	aside, err := os.CreateTemp(files, "stage-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(files, m.Name)
	_, err = aside.Write(m.Code)
	if err = errors.Join(err, aside.Close()); err == nil {
		err = os.Rename(aside.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(aside.Name()))
	}
	return path, nil
}
