package engine

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// The endings of the names of an engine's files: its module, its description, and the licences of its sources.
const (
	moduleSuffix  = ".wasm.gz"
	aboutSuffix   = ".about.json"
	licenseSuffix = ".licenses.txt"
)

//go:embed dist
var dist embed.FS

// A Set is a set of engines to build tools with. It is safe for concurrent use, and keeps the engines that it has unpacked.
type Set struct {
	files fs.FS

	mu     sync.Mutex
	opened map[string]func() (*Engine, error)
}

// Carried returns the engines that this binary carries. It returns the same Set each time.
func Carried() *Set { return carried() }

var carried = sync.OnceValue(func() *Set {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is valid
	}
	return From(files)
})

// From returns the engines in a folder. For each language NAME, NAME.wasm.gz is the engine, NAME.about.json its description, as in its section, and
// NAME.licenses.txt the licences of its sources.
func From(folder fs.FS) *Set {
	return &Set{files: folder, opened: map[string]func() (*Engine, error){}}
}

// Open returns the engine for a language.
func (s *Set) Open(name string) (*Engine, error) {
	s.mu.Lock()
	open := s.opened[name]
	if open == nil {
		open = sync.OnceValues(func() (*Engine, error) { return s.read(name) })
		s.opened[name] = open
	}
	s.mu.Unlock()
	return open()
}

// read reads and unpacks an engine.
func (s *Set) read(name string) (*Engine, error) {
	packed, err := fs.ReadFile(s.files, name+moduleSuffix)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("there is no engine for %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the engine: %w", err)
	}
	module, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack the engine %s: %w", name, err)
	}
	e, err := Parse(module)
	if err != nil {
		return nil, fmt.Errorf("the engine %s: %w", name, err)
	}
	if e.Name != name {
		return nil, fmt.Errorf("the engine %s says that it is %s", name, e.Name)
	}
	return e, nil
}

// maxEngine is larger than any engine, and bounds what a wrong file unpacks to.
const maxEngine = 64 << 20

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	module, err := io.ReadAll(io.LimitReader(r, maxEngine+1))
	if err != nil {
		return nil, err
	}
	if len(module) > maxEngine {
		return nil, fmt.Errorf("it has more than %d bytes", maxEngine)
	}
	return module, nil
}

// List returns the descriptions of the engines, sorted by their names. It unpacks none: that takes 100 ms and 60 MB, and every start of the program
// would wait for it.
func (s *Set) List() ([]About, error) {
	names, err := fs.Glob(s.files, "*"+aboutSuffix)
	if err != nil {
		return nil, fmt.Errorf("list the engines: %w", err)
	}
	var list []About
	for _, name := range names {
		text, err := fs.ReadFile(s.files, name)
		if err != nil {
			return nil, fmt.Errorf("list the engines: %w", err)
		}
		about, err := readAbout(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if about.Name+aboutSuffix != name {
			return nil, fmt.Errorf("%s says that it is %s", name, about.Name)
		}
		list = append(list, about)
	}
	return list, nil
}

// Licenses returns the licences of the sources from which an engine was built.
func (s *Set) Licenses(name string) (string, error) {
	licenses, err := fs.ReadFile(s.files, name+licenseSuffix)
	if err != nil {
		return "", fmt.Errorf("read the licences of the engine %s: %w", name, err)
	}
	return string(licenses), nil
}
