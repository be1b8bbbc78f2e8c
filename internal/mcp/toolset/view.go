package toolset

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// pageSize is how many tools a page of the list has. Many clients never ask for a second one.
const pageSize = 1000

// A View is what principals with the same scopes see of a namespace at one moment. It never changes and is safe for concurrent use.
type View struct {
	derived   *derived
	namespace string
	listed    []*entry   // the enabled tools, sorted by name
	places    []int      // where the tools in listed are in the table
	directory *directory // nil if the list has all tools
	shown     []*entry   // the list
	edition   uint64
	most      int64                     // the largest limit of arguments among the tools, in bytes
	pages     [2][]atomic.Pointer[Page] // the pages of the list for each era
}

// A Page is a part of the list of tools.
type Page struct {
	// Tools is a JSON array of tools, as in tools/list. It must not be changed.
	Tools json.RawMessage
	// Next is the cursor of the next page, or empty.
	Next string
}

// newView makes a view. Views of principals with the same scopes are equal.
func (st *derived) newView(namespace string, p *wasmtools.Principal) *View {
	if p != nil {
		st.set.viewsMade.Add(1)
	}
	v := &View{derived: st, namespace: namespace}
	routes := st.generation.Routes()
	sum := fnv.New64a()
	sorted := st.names().sorted
	if p == nil {
		sorted = nil
	}
	for _, i := range sorted {
		e, route := st.entries[i], &routes[i]
		if route.Enabled && e.hidden == "" && e.within(namespace) && p.MayCall(route) {
			v.listed, v.places = append(v.listed, e), append(v.places, i)
			v.most = max(v.most, cmp.Or(e.tool.MaxInput, wasmtools.DefaultMaxInput))
		}
	}
	v.shown = v.listed
	// A namespace without tools must look like one whose tools are all hidden, so neither has tools of its own.
	if d := st.set.search; d == SearchAlways && (namespace == "" || len(v.listed) > 0) || d == SearchAuto && len(v.listed) > searchAbove {
		v.directory = v.newDirectory()
		v.shown = []*entry{v.directory.call, v.directory.search}
	}
	for _, e := range v.shown {
		sum.Write(e.sum[:])
	}
	v.edition = sum.Sum64()
	count := max(1, (len(v.shown)+pageSize-1)/pageSize)
	for era := range v.pages {
		v.pages[era] = make([]atomic.Pointer[Page], count)
	}
	return v
}

// Edition returns a number that two views share if their lists are the same. A caller that only waits for a change should use [Set.Edition], which
// makes no view.
func (v *View) Edition() uint64 { return v.edition }

// NewBody returns the body for a message that may call any tool of the view. The message may have frame bytes in addition to the arguments. The
// body's memory is counted for this call.
func (v *View) NewBody(call *wasmtools.Call, frame int64) *invoker.Body {
	return v.derived.set.invoker.NewBody(call, v.most+frame)
}

// List returns a page of the list of tools, which is sorted by name: the first page for an empty cursor, and the following page for the cursor of
// another one. If tools come or go between two pages, no other tool is skipped or repeated. The error is an *Error.
func (v *View) List(cursor string, era Era) (*Page, error) {
	first := 0
	if cursor != "" {
		name, ok := readCursor(cursor)
		if !ok {
			return nil, &Error{Code: CodeInvalidParams, Message: "Invalid cursor"}
		}
		first, _ = slices.BinarySearchFunc(v.shown, name, func(e *entry, name string) int { return strings.Compare(e.name, name) })
		if first < len(v.shown) && v.shown[first].name == name {
			first++
		}
	}
	n := first / pageSize
	if n*pageSize != first || n >= len(v.pages[era]) {
		return v.page(first, era), nil // the list has changed since the page before
	}
	if p := v.pages[era][n].Load(); p != nil {
		return p, nil
	}
	p := v.page(first, era)
	if size := int64(len(p.Tools)); v.derived.kept.Add(size) <= maxKept {
		v.pages[era][n].Store(p)
	} else {
		v.derived.kept.Add(-size)
	}
	return p, nil
}

// page makes the page that begins at a place in the list.
func (v *View) page(first int, era Era) *Page {
	last := min(len(v.shown), first+pageSize)
	size := 2
	for _, e := range v.shown[first:last] {
		size += len(e.shown[era]) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, e := range v.shown[first:last] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e.shown[era]...)
	}
	p := &Page{Tools: append(out, ']')}
	if last < len(v.shown) {
		p.Next = newCursor(v.shown[last-1].name)
	}
	return p
}

// find returns the place of a tool in the table, if the tool is in the namespace and the principal may call it.
func (v *View) find(name string, p *wasmtools.Principal) (int, bool) {
	i, ok := v.derived.names().places[name]
	if !ok {
		return 0, false
	}
	e := v.derived.entries[i]
	return i, e.hidden == "" && e.within(v.namespace) && p.May(v.derived.generation.Routes()[i].Path)
}

// hash returns a hash of texts.
func hash(texts ...[]byte) (sum [8]byte) {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = h.Write(text)
	}
	binary.BigEndian.PutUint64(sum[:], h.Sum64())
	return sum
}
