package toolfile

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Report says what is in a module. Its JSON is stable. Names in it come from the file and must not be trusted.
type Report struct {
	Digest string `json:"digest"` // SHA-256, hexadecimal
	Size   int    `json:"size"`   // bytes
	SDK    string `json:"sdk,omitempty"`
	// Manifest is nil if none is embedded. It is also nil if the embedded one is bad, and then ManifestError says why. Described means that the
	// manifest is not embedded but was returned by toolsrv_describe; Inspect itself runs nothing.
	Manifest      *manifest.Manifest `json:"manifest,omitempty"`
	Described     bool               `json:"described,omitempty"`
	ManifestError string             `json:"manifest_error,omitempty"`
	// Imports, Exports, Memories (in bytes), Tables (in elements) and Sections have at most 1,000 entries. Left counts the others.
	Imports  []Symbol  `json:"imports"`
	Exports  []Symbol  `json:"exports"`
	Memories []Limit   `json:"memories"`
	Tables   []Limit   `json:"tables"`
	Sections []Section `json:"sections"`
	Left     Left      `json:"left,omitzero"`
	// Features are the features beyond WebAssembly 1.0 that the module's types and code use.
	Features []string `json:"features"`
	// ResetsInPlace means that an instance can be reused after a call. Otherwise NoReset says why not.
	ResetsInPlace bool   `json:"resets_in_place"`
	NoReset       string `json:"no_reset,omitempty"`
	// Refused says why the code is refused. Inspect does not look for other reasons to refuse a module.
	Refused string `json:"refused,omitempty"`
}

// Left counts what a Report leaves out.
type Left struct {
	Imports      int `json:"imports,omitempty"`
	Exports      int `json:"exports,omitempty"`
	Tables       int `json:"tables,omitempty"`
	Sections     int `json:"sections,omitempty"`
	SectionsSize int `json:"sections_size,omitempty"` // bytes
}

// A Symbol is an import or an export.
type Symbol struct {
	Module string `json:"module,omitempty"` // of an import
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Type   string `json:"type,omitempty"` // the type of a function or a global
}

// A Limit is the initial size of a memory or table, and the size that it may grow to.
type Limit struct {
	Min      uint64  `json:"min"`
	Max      *uint64 `json:"max,omitempty"` // nil: the module sets none
	Imported bool    `json:"imported,omitempty"`
}

// A Section is one section of the file.
type Section struct {
	Name   string `json:"name"`
	Custom bool   `json:"custom,omitempty"`
	Offset int    `json:"offset"`
	Size   int    `json:"size"` // bytes, the head included
}

// maxListed is how many entries of each kind a Report lists. A hostile file may have thousands of sections, and thousands of exports whose types take
// kilobytes each.
const maxListed = 1000

// pageSize is the unit of a memory's limits, in bytes.
const pageSize = 64 << 10

// Inspect reports what is in a module, without running or compiling it. It fails only if content is not a module. All other problems are in the
// report.
func Inspect(content []byte) (*Report, error) {
	binary, err := wasmbin.Parse(content)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	r := &Report{
		Digest:   hex.EncodeToString(sum[:]),
		Size:     len(content),
		Imports:  []Symbol{},
		Exports:  []Symbol{},
		Memories: []Limit{},
		Tables:   []Limit{},
		Features: []string{},
		Sections: []Section{},
	}
	r.readManifest(binary)
	for _, i := range first(binary.Imports(), &r.Left.Imports) {
		r.Imports = append(r.Imports, symbol(i.Module, i.Name, i.Kind, i.Type, i.Global))
	}
	for _, e := range first(binary.Exports(), &r.Left.Exports) {
		r.Exports = append(r.Exports, symbol("", e.Name, e.Kind, e.Type, e.Global))
	}
	for _, m := range binary.Memories() { // there are at most 100
		r.Memories = append(r.Memories, limit(m.Min*pageSize, m.Max*pageSize, m.HasMax, m.Imported))
	}
	for _, t := range first(binary.Tables(), &r.Left.Tables) {
		r.Tables = append(r.Tables, limit(t.Min, t.Max, t.HasMax, t.Imported))
	}
	for s := range binary.Sections() {
		if len(r.Sections) < maxListed {
			r.Sections = append(r.Sections, Section(s))
		} else {
			r.Left.Sections++
			r.Left.SectionsSize += s.Size
		}
	}
	r.judge(binary)
	return r, nil
}

// readManifest reads the embedded manifest, if there is one.
func (r *Report) readManifest(binary *wasmbin.Module) {
	text, err := embedded(binary)
	if err == nil && text != nil {
		if r.Manifest, err = ParseManifest(text); err == nil {
			r.SDK = r.Manifest.SDK
		}
	}
	if err != nil {
		r.ManifestError = err.Error()
	}
}

// judge finds out how the module can be run.
func (r *Report) judge(binary *wasmbin.Module) {
	features, err := binary.Features()
	if err == nil {
		r.Features = append(r.Features, features...)
		var rewritten *instrument.Rewritten
		if rewritten, err = instrument.Rewrite(binary); err == nil {
			r.ResetsInPlace, r.NoReset = rewritten.Fresh == "", rewritten.Fresh
		}
	}
	if err != nil {
		r.Refused = err.Error()
	}
}

// first returns the beginning of a list for a Report, and sets left to the number of other entries.
func first[T any](list []T, left *int) []T {
	n := min(len(list), maxListed)
	*left = len(list) - n
	return list[:n]
}

func symbol(module, name string, kind wasmbin.Kind, function wasmbin.FuncType, global wasmbin.GlobalType) Symbol {
	s := Symbol{Module: module, Name: name, Kind: kind.String()}
	switch kind {
	case wasmbin.KindFunction:
		s.Type = function.String()
	case wasmbin.KindGlobal:
		s.Type = global.String()
	}
	return s
}

func limit(least, most uint64, bounded, imported bool) Limit {
	l := Limit{Min: least, Imported: imported}
	if bounded {
		l.Max = &most
	}
	return l
}
