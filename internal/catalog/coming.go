package catalog

import (
	"path"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// anywhere means all namespaces: the manifest of a new file at the top of the source may name any.
const anywhere = "*"

// coming knows which paths may get a tool in a moment. A client that asks for any other path is told at once that it has no tool. Only the
// reconciler's goroutine changes it. The zero value is ready to use.
type coming struct {
	mu      sync.RWMutex
	started bool                 // all files of the first listing are known; until then, any path may come
	loading map[string]int       // for each namespace, how many files that may have it are being loaded
	soon    map[string]time.Time // for each namespace, until when to wait for files that are loaded but in no generation, or are settling
	gone    map[string]struct{}  // paths that were served a moment ago, and that another file may serve soon
}

// calm notes whether the start is over. If nothing is pending, it forgets all else.
func (c *coming) calm(started, pending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started = started; !pending {
		c.soon, c.gone = nil, nil
	}
}

// begin notes that a file that may have tools in these namespaces is being loaded.
func (c *coming) begin(namespaces []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loading == nil {
		c.loading = map[string]int{}
	}
	for _, n := range namespaces {
		c.loading[n]++
	}
}

// end notes that such a load has ended. Its result is published later.
func (c *coming) end(namespaces []string) {
	c.mu.Lock()
	for _, n := range namespaces {
		if c.loading[n]--; c.loading[n] == 0 {
			delete(c.loading, n)
		}
	}
	c.mu.Unlock()
	c.expect(namespaces, time.Time{})
}

// expect notes that these namespaces may soon have other tools, until a time or, if that is zero, until the next generation.
func (c *coming) expect(namespaces []string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.soon == nil {
		c.soon = map[string]time.Time{}
	}
	for _, n := range namespaces {
		if before, ok := c.soon[n]; !ok || until.After(before) {
			c.soon[n] = until
		}
	}
}

// leave notes the paths of a generation that the next one will not have.
func (c *coming) leave(before *wasmtools.Generation, next []*wasmtools.Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stay := make(map[string]struct{}, len(next))
	for _, t := range next {
		stay[t.Path()] = struct{}{}
	}
	for _, r := range before.Routes() {
		if _, ok := stay[r.Path]; !ok {
			if c.gone == nil {
				c.gone = map[string]struct{}{}
			}
			c.gone[r.Path] = struct{}{}
		}
	}
}

// published notes that a generation has all that was loaded.
func (c *coming) published() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, until := range c.soon {
		if !now.Before(until) {
			delete(c.soon, n)
		}
	}
}

// may reports whether a path may be served in a moment.
func (c *coming) may(tool string) bool {
	namespace := namespaceOf(tool)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.started {
		return true
	}
	if _, ok := c.gone[tool]; ok {
		return true
	}
	for _, n := range []string{namespace, anywhere} {
		if _, ok := c.soon[n]; ok || c.loading[n] > 0 {
			return true
		}
	}
	return false
}

// namespaceOf returns the namespace of a tool's path, "" for "/tool".
func namespaceOf(tool string) string { return strings.Trim(path.Dir(tool), "/.") }

// namespaces returns where a file may have tools once it is loaded: in its folder, and where it has or wants some now.
func (f *file) namespaces() []string {
	if f.listed.Folder == "" && f.serving == nil && f.waiting == nil {
		return []string{anywhere}
	}
	all := []string{f.from.namespace(f.listed.Folder)}
	for _, m := range []*module{f.serving, f.waiting} {
		all = m.namespaces(all)
	}
	return all
}

// namespaces appends the namespaces of a module's tools that are not listed yet. A module has few.
func (m *module) namespaces(to []string) []string {
	if m == nil {
		return to
	}
	for _, t := range m.Tools() {
		if n := namespaceOf(t.Path()); len(to) == 0 || to[len(to)-1] != n {
			to = append(to, n)
		}
	}
	return to
}
