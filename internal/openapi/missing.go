package openapi

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// These bound the cost of guessing which tool was meant, however many tools there are and whatever the path is.
const (
	maxGuessed = 72 // bytes of a path: a tool's path has 65 at most
	guessedFor = 8  // tools to look at on each side of the path, in each of two orders
	maxSights  = 64 // sets of scopes whose tools are kept; each takes 80 KB for 10,000 tools
)

// answerMissing answers a request for a path without a tool, before the body has been read. A tool that has appeared since the lookup is found in the
// newest generation.
func (x *exchange) answerMissing() {
	if answerNamespace(x) {
		return
	}
	if _, err := invoke.Find(x.derived.generation, x.Request().URL.Path, x.Call().Principal); err != nil && !isNotFound(err) {
		x.Fail(err)
		return
	}
	if _, err := x.Renew(); err != nil {
		x.Fail(err)
		return
	}
	if newest := x.derived.door.made.Of(x.Generation()); newest != x.derived {
		x.derived = newest
		newest.router.ServeHTTP(x, x.Request())
		return
	}
	x.answerNotFound()
}

func isNotFound(err error) bool {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	return ok && failed.Code == wasmtools.CodeNotFound
}

// answerNotFound answers that the path has no tool, and names the one that was probably meant.
func (x *exchange) answerNotFound() {
	e := &wasmtools.Error{Code: wasmtools.CodeNotFound}
	if meant := x.derived.guess(x.Request().URL.Path, x.Call().Principal); meant != "" {
		e.Message = "Not Found: did you mean " + meant + "?"
	}
	x.Fail(e)
}

// guess returns the path of the tool that was probably meant, or "". It is enabled, and the principal may call it. Other tools are ignored, so that
// neither a guess nor its absence reveals them.
func (s *derived) guess(path string, p *wasmtools.Principal) string {
	if len(path) > maxGuessed {
		return ""
	}
	var names, same []string
	_, name := cutName(path)
	for _, i := range s.near.around(path, s.sightOf(p)) {
		near := s.entries[i].path
		names = append(names, near)
		if _, n := cutName(near); n == name && name != "" {
			same = append(same, near)
		}
	}
	if meant := text.Nearest(path, names); meant != "" {
		return meant
	}
	if len(same) > 0 {
		return slices.Min(same) // the tool with that name in another namespace
	}
	return ""
}

// A sight is the enabled tools that principals with the same scopes may call: their places in each order of a neighbourhood.
type sight [2][]int32

// sights are the sights of a generation, by scopes.
type sights struct {
	mu       sync.Mutex
	byScopes map[string]*sight
}

// sightOf returns the sight of a principal.
func (s *derived) sightOf(p *wasmtools.Principal) *sight {
	if p.MayAll() {
		p = wasmtools.Everybody()
	}
	scopes := strings.Join(p.Scopes(), "\n")
	s.sights.mu.Lock()
	found := s.sights.byScopes[scopes]
	s.sights.mu.Unlock()
	if found != nil {
		return found
	}
	found = new(sight) // without the lock: it looks at every tool
	routes := s.generation.Routes()
	for o, places := range s.near.sorted() {
		for at, place := range places {
			if route := &routes[place.number]; route.Enabled && p.MayCall(route) {
				found[o] = append(found[o], int32(at))
			}
		}
	}
	s.sights.mu.Lock()
	defer s.sights.mu.Unlock()
	if len(s.sights.byScopes) >= maxSights {
		clear(s.sights.byScopes)
	}
	if s.sights.byScopes == nil {
		s.sights.byScopes = map[string]*sight{}
	}
	s.sights.byScopes[scopes] = found
	return found
}

// cutName cuts a path into its namespace and the tool's name.
func cutName(path string) (namespace, name string) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// A neighbourhood finds the tools whose paths have the most similar beginning or end, since a typing error mostly leaves one of these unchanged. It
// is built when it is first needed.
type neighbourhood struct {
	entries []*entry
	once    sync.Once
	orders  [2][]place // places ordered by the path, and by the reversed path
}

// A place is the place of a tool in an order.
type place struct {
	key    string
	number int // number of the entry
}

// sorted returns the places of all entries, in both orders.
func (n *neighbourhood) sorted() [2][]place {
	n.once.Do(func() {
		for o := range n.orders {
			n.orders[o] = make([]place, len(n.entries))
			for i, e := range n.entries {
				n.orders[o][i] = place{keyOf(e.path, o), i}
			}
			slices.SortFunc(n.orders[o], func(a, b place) int { return strings.Compare(a.key, b.key) })
		}
	})
	return n.orders
}

// around returns the numbers of the entries of a sight whose paths are next to path, at most 4 × guessedFor.
func (n *neighbourhood) around(path string, of *sight) (numbers []int) {
	for o, places := range n.sorted() {
		at, _ := slices.BinarySearchFunc(of[o], keyOf(path, o), func(at int32, key string) int { return strings.Compare(places[at].key, key) })
		for _, i := range of[o][max(0, at-guessedFor):min(len(of[o]), at+guessedFor)] {
			numbers = append(numbers, places[i].number)
		}
	}
	slices.Sort(numbers) // so that the guess between two equally near tools is always the same
	return slices.Compact(numbers)
}

// keyOf returns the key of a path in an order: the path without the characters that people confuse most often.
func keyOf(path string, order int) string {
	key := []byte(strings.ToLower(strings.Trim(path, "/")))
	for i, c := range key {
		if c == '-' {
			key[i] = '_'
		}
	}
	if order == 1 {
		slices.Reverse(key)
	}
	return string(key)
}
