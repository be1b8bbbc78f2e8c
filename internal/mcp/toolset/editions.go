package toolset

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// maxEditions is how many editions are kept: in nearly every service there are fewer sessions and streams with lists of their own.
	maxEditions = 16 << 10
	// maxChanged is how many changed paths are kept. Editions older than these changes are made again.
	maxChanged = 4 << 10
)

// An Edition says which list of tools somebody sees, and as of when.
type Edition struct {
	// List is a number that two editions share if their lists are the same.
	List uint64
	// At is the number of a generation. A later edition has a larger number.
	At uint64
}

// editions keep the editions of lists. Thousands of clients may wait for changes, hundreds of them with scopes of their own, but only maxViews lists
// are kept. Without editions, finding out whose list has changed meant making lists: a reload of 500 callers' tokens made 9,900 of them for 5,000
// streams, in 1.7 s. With editions, each list costs a look at the changed paths, and only a list that may have changed is made again, once.
type editions struct {
	mu      sync.Mutex
	of      *derived // the last generation that the field changes covers
	since   uint64   // the number of the generation before the first of changes
	changes []change
	changed int // how many paths all elements of changes have together
	known   map[[sha256.Size]byte]known
}

// A change is the set of paths that are shown differently since a certain generation.
type change struct {
	number uint64
	paths  []string
}

// A known is a kept edition. The first caller that needs it makes its list, and others wait.
type known struct {
	at   uint64
	list func() uint64
}

// edition returns the edition of a principal's view of a namespace in a generation, or in a later one for which somebody has asked.
func (e *editions) edition(st *derived, namespace string, p *wasmtools.Principal) Edition {
	if p.MayAll() {
		p = wasmtools.Everybody()
	}
	if namespace != "" && !st.names().namespaces[namespace] { // made-up names must not fill memory
		return Edition{st.newView(namespace, nil).edition, st.number}
	}
	key := sha256.Sum256([]byte(namespace + "\n" + strings.Join(p.Scopes(), "\n")))
	e.mu.Lock()
	e.follow(st)
	st = e.of
	k, ok := e.known[key]
	if !ok || k.at != st.number {
		before, changes := k, e.after(k.at)
		k = known{st.number, sync.OnceValue(func() uint64 {
			if ok && changes != nil && !concern(changes, namespace, p) {
				return before.list()
			}
			return st.view(namespace, p, false).edition
		})}
		if len(e.known) >= maxEditions {
			clear(e.known)
		}
		e.known[key] = k
	}
	e.mu.Unlock()
	return Edition{k.list(), k.at}
}

// forget releases generations that are not the current one, if somebody has asked for editions.
func (e *editions) forget(current *derived) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of != nil {
		e.follow(current)
	}
}

// follow notes what has changed up to a generation. The caller holds mu.
func (e *editions) follow(st *derived) {
	switch {
	case e.of == nil:
		e.since, e.known = st.number, map[[sha256.Size]byte]known{}
	case st.number <= e.of.number:
		return
	default:
		paths := changedPaths(e.of, st)
		e.changes, e.changed = append(e.changes, change{st.number, paths}), e.changed+len(paths)
	}
	e.of = st
	drop := 0
	for ; e.changed > maxChanged || len(e.changes)-drop > maxChanged; drop++ {
		e.since, e.changed = e.changes[drop].number, e.changed-len(e.changes[drop].paths)
	}
	e.changes = slices.Delete(e.changes, 0, drop)
}

// after returns the changes after a generation, or nil if some of them are no longer known. The caller holds mu.
func (e *editions) after(number uint64) []change {
	if number < e.since {
		return nil
	}
	n := len(e.changes)
	for n > 0 && e.changes[n-1].number > number {
		n--
	}
	return slices.Clone(e.changes[n:])
}

// concern reports whether any of these changes may affect a principal's view of a namespace.
func concern(changes []change, namespace string, p *wasmtools.Principal) bool {
	for _, c := range changes {
		for _, path := range c.paths {
			if strings.HasPrefix(path[1:], namespace) && (namespace == "" || strings.HasPrefix(path[1+len(namespace):], "/")) && p.May(path) {
				return true
			}
		}
	}
	return false
}

// changedPaths returns the paths of the tools that two generations show differently.
func changedPaths(a, b *derived) (paths []string) {
	old, now := a.generation.Routes(), b.generation.Routes() // both are sorted by path
	for i, k := 0, 0; i < len(old) || k < len(now); {
		switch {
		case k == len(now) || i < len(old) && old[i].Path < now[k].Path:
			paths = append(paths, old[i].Path)
			i++
		case i == len(old) || now[k].Path < old[i].Path:
			paths = append(paths, now[k].Path)
			k++
		default:
			if old[i].Enabled != now[k].Enabled || a.entries[i] != b.entries[k] && !a.entries[i].looksLike(b.entries[k]) {
				paths = append(paths, now[k].Path)
			}
			i++
			k++
		}
	}
	return paths
}

// looksLike reports whether both routes look the same in lists.
func (e *entry) looksLike(other *entry) bool { return e.sum == other.sum && e.hidden == other.hidden }
