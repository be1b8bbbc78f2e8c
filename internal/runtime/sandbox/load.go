package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/text"
)

// Load parses a module, and then does what LoadModule does.
func (e *Engine) Load(bytes []byte, imports ...string) (*Program, error) {
	parsed, err := wasmbin.Parse(bytes)
	if err != nil {
		return nil, err
	}
	return e.LoadModule(parsed, imports...)
}

// Modules returns the import modules of the engine's sets. A program can't be allowed to import from any other.
func (e *Engine) Modules() []string { return e.offered.modules() }

// LoadModule checks a module without compiling it. The module must import only functions of the engine's sets, and only from the import modules named
// in imports. It must export what a tool must, and have one memory of its own. Errors say what is wrong and what to do.
//
// Modules that differ only in custom sections, such as the manifest, share code and instances, but each may import only what its own load allows.
// Modules that also differ in their bundles share their interpreter's code.
//
// The module is copied; closing the Program frees the copy. All copies together, compressed if need be, take at most a quarter of Config.Memory: if
// there is no room for a module, the error is a *RoomError.
func (e *Engine) LoadModule(parsed *wasmbin.Module, imports ...string) (*Program, error) {
	return e.LoadAs(parsed, Loading{Imports: imports})
}

// A Loading says how a module is loaded.
type Loading struct {
	// Imports are the import modules from which the module may import.
	Imports []string
	// Bundle is the script of a module that is an interpreter without a bundle. The two are not put together into a file, so the program's digest is
	// made of their two digests instead of a file's SHA-256. Bundle must not be changed from now on. If nil, the module is complete.
	Bundle []byte
	// Replaces says that the module takes the place of another one, which is closed afterwards. An eighth of the room for modules is reserved
	// for such modules.
	Replaces bool
}

// LoadAs is LoadModule for a module that was parsed already.
func (e *Engine) LoadAs(parsed *wasmbin.Module, l Loading) (_ *Program, err error) {
	if size := (wasmbin.Made{Module: parsed, Bundle: l.Bundle}).Size(); size > MaxModule {
		return nil, fmt.Errorf("the module has %d bytes; the limit is %s: strip it", size, text.Size(MaxModule))
	}
	if err := e.offered.check(parsed, l.Imports); err != nil {
		return nil, err
	}
	m := &module{engine: e}
	found, bundled := wasmbin.Bundle{Content: l.Bundle}, l.Bundle != nil
	if bundled {
		var ok bool
		if found.Address, ok = parsed.Constant(exportBundle); !ok {
			return nil, fmt.Errorf("the module is not an interpreter: it does not export the address %s", exportBundle)
		}
	} else {
		found, bundled = parsed.Bundle(exportBundle)
	}
	var ofCode sum
	switch {
	case l.Bundle != nil:
		ofCode = parsed.Sum()
		m.sum = sumOfBundle(ofCode, found)
	case bundled:
		ofCode = e.sumOfEngine(found)
		m.sum = sumOfBundle(ofCode, found)
	default:
		ofCode = parsed.Sum()
		m.sum = ofCode
	}
	whole := m.sum
	if l.Bundle == nil {
		whole = sha256.Sum256(parsed.Bytes())
	}
	m.plain, m.digest = m.sum, hex.EncodeToString(whole[:])
	if p, err := e.loaded(m.sum, m.digest, nil); p != nil || err != nil {
		return p, err
	}
	if m.shape, err = check(parsed); err != nil {
		return nil, err
	}
	e.mu.Lock()
	m.code = e.codes[ofCode]
	e.mu.Unlock()
	if m.code == nil {
		engine := parsed.Bare
		if bundled && l.Bundle == nil {
			engine = found.Engine
		}
		if m.code, err = e.newCode(ofCode, m.digest, engine(), l.Replaces); err != nil {
			return nil, err
		}
		defer m.code.Source().Release()
	}
	if !bundled {
		return e.loaded(m.sum, m.digest, m)
	}
	content := l.Bundle
	if content == nil {
		content = slices.Clone(found.Content)
	}
	kept, err := e.newSource(content, l.Replaces)
	if err != nil {
		return nil, err
	}
	defer kept.Release()
	m.bundle = &bundle{found.Address, kept}
	p, err := e.loaded(m.sum, m.digest, m)
	if err == nil {
		e.interpreter(p.module.code)
	}
	return p, err
}

// With returns the program with other settings: JSON that its guests receive in each call and in their start; nil for none. The snapshot contains
// what a start has made of the settings. So the result is another program, which shares the code, and has a snapshot and instances of its own. p must
// not be closed yet. Both programs must be closed. Tools of p keep their settings.
func (p *Program) With(settings []byte) (*Program, error) {
	m := p.module
	of := m.plain
	if settings != nil {
		of = sumOfSettings(m.plain, settings)
	}
	if found, err := m.engine.loaded(of, p.digest, nil); found != nil || err != nil {
		return found, err
	}
	other := &module{engine: m.engine, code: m.code, sum: of, plain: m.plain, digest: m.digest, shape: m.shape, settings: slices.Clone(settings)}
	if m.bundle != nil {
		other.bundle = &bundle{m.bundle.address, m.bundle.source}
	}
	return m.engine.loaded(of, p.digest, other)
}

// sumOfSettings returns the sum of a module with settings. Its first byte is neither that of a section nor that of the sum of a bundle.
func sumOfSettings(plain sum, settings []byte) (of sum) {
	h := sha256.New()
	h.Write([]byte{0xfe})
	h.Write(plain[:])
	h.Write(settings)
	h.Sum(of[:0])
	return of
}

// newCode returns the code of a module without its bundle and without custom sections. The caller has a hold on its source.
func (e *Engine) newCode(of sum, digest string, bare []byte, replaces bool) (*code, error) {
	source, err := e.newSource(bare, replaces)
	if err != nil {
		return nil, err
	}
	c, err := e.foundry.NewCode(of, digest, bare, source)
	if err != nil {
		source.Release()
		return nil, err
	}
	return &code{Code: c, sum: of, modules: map[*module]struct{}{}}, nil
}

// A RoomError means that there is too little memory to keep a module's bytes. They are kept as long as the module is loaded, because the cache may
// lose the module's code.
type RoomError struct {
	Needs int64 // bytes
	Limit int64 // of all together
}

// Error says what to do.
func (e *RoomError) Error() string {
	return fmt.Sprintf("keeping the module, compressed, takes %s of memory, and with all other modules that exceeds the limit of %s: make it smaller, remove other tools, or raise server.memory",
		text.Size(e.Needs), text.Size(e.Limit))
}

// newSource returns a source on which the caller has a hold. If there is no room for the bytes, the error is a *RoomError. replaces is as in
// [Program.Keep].
func (e *Engine) newSource(content []byte, replaces bool) (*foundry.Source, error) {
	s := foundry.NewSource(e.account, content)
	fits := func() bool { return s.Take(replaces) }
	if fits() {
		return s, nil
	}
	if s.Pack(); fits() {
		return s, nil
	}
	if e.packAll(true); fits() {
		return s, nil
	}
	return nil, &RoomError{s.Length(), e.account.Use(account.Sources).Limit}
}

// packAll compresses bundles, and the modules whose code was in the cache when they were loaded. Compressing a small one takes a tenth of a
// millisecond, for which the start of a server has no time. If room is needed, it also compresses modules that are yet to be compiled.
func (e *Engine) packAll(needed bool) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.modules))
	e.mu.Unlock()
	for _, m := range all {
		if e.stop.Err() != nil {
			return
		}
		if c := m.code; needed || c.Quiet() {
			c.Source().Pack()
		}
		if m.bundle != nil {
			m.bundle.source.Pack()
		}
	}
}

// A bundle is what a module has in addition to its interpreter: a data segment, which is written after the interpreter was initialised.
type bundle struct {
	address uint32
	source  *foundry.Source // each module with this bundle has a hold on it
}

// sumOfBundle returns the sum of a module with that interpreter and that bundle. Its first byte is not that of any section, so that it can't equal
// the sum of a module's sections.
func sumOfBundle(engine sum, b wasmbin.Bundle) (of sum) {
	h := sha256.New()
	h.Write([]byte{0xff})
	h.Write(engine[:])
	h.Write(binary.LittleEndian.AppendUint32(nil, b.Address))
	h.Write(b.Content)
	h.Sum(of[:0])
	return of
}

// mostInterpreters is how many interpreters are remembered.
const mostInterpreters = 4

// interpreter remembers code as an interpreter of which modules with bundles are made, until it is released.
func (e *Engine) interpreter(c *code) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.codes[c.sum] == c && !slices.Contains(e.interpreters, c) && len(e.interpreters) < mostInterpreters {
		e.interpreters = append(e.interpreters, c)
	}
}

// sumOfEngine returns the sum of a module without its bundle. Comparing it with a known interpreter takes a quarter of the time of a SHA-256: for
// CPython 2 ms instead of 8, for each tool file of a script.
func (e *Engine) sumOfEngine(b wasmbin.Bundle) sum {
	e.mu.Lock()
	known := slices.Clone(e.interpreters)
	e.mu.Unlock()
	for _, c := range known {
		if engine := c.Source().Unpacked(); engine != nil && b.IsOf(engine) {
			return c.sum
		}
	}
	return b.EngineSum()
}

// loaded returns a new hold on the module with the given sum, for a file with the given digest. If there is no such module, fresh becomes it; if
// fresh is nil, loaded returns nil.
func (e *Engine) loaded(of sum, digest string, fresh *module) (*Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return nil, ErrClosed
	}
	m, ok := e.modules[of]
	if !ok {
		if fresh == nil {
			return nil, nil
		}
		m = fresh
		m.called = time.Now()
		e.modules[of] = m
		if known, ok := e.codes[m.code.sum]; ok {
			m.code = known
		} else {
			e.codes[m.code.sum] = m.code
		}
		m.enlist()
	}
	m.hold()
	return &Program{module: m, digest: digest}, nil
}

// attach counts a call of a module that is not attached: it has never been called, or all its holds were given up. It returns false if the
// engine is closed.
func (e *Engine) attach(m *module) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.live[m] = struct{}{}
	m.enlist()
	m.attached = true
	m.count(1)
	return true
}

// forget frees a module without users, and its code if no other module uses that.
func (e *Engine) forget(m *module) {
	e.mu.Lock()
	m.mu.Lock()
	var ofModule, ofCode released
	if c := m.code; m.users == 0 {
		ofModule = m.strip()
		m.attached = false
		delete(e.live, m)
		if e.modules[m.sum] == m {
			delete(e.modules, m.sum)
		}
		if m.delist(); len(c.modules) == 0 {
			ofCode = c.strip()
			if e.codes[c.sum] == c {
				delete(e.codes, c.sum)
				e.interpreters = slices.DeleteFunc(e.interpreters, func(i *code) bool { return i == c })
			}
		}
	}
	m.mu.Unlock()
	e.mu.Unlock()
	ofModule.free(e)
	ofCode.free(e)
}
