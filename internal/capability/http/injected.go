package http

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/reach"
)

// keepPut is how long a secret is looked for after the last configuration that had it put in: twice the longest time that a call can
// take.
const keepPut = 2 * time.Hour

// Injected knows which secrets the host puts into requests, by whichever grant, and to which hosts. A service may show one caller what
// another has sent, at another port as well. So whatever comes from a host is searched for all that is put in there. It is safe for
// concurrent use, and its zero value knows nothing.
type Injected struct {
	mu      sync.Mutex                // guards last and before
	last    map[injection]bool        // of the last configuration
	before  map[injection]time.Time   // of those before it, and until when they were in force
	current atomic.Pointer[putInHost] // made of both
}

// An injection is a secret that is put into requests to a host, which may begin with "*.", or be "*".
type injection struct{ host, secret string }

// putInHost has the names of secrets by host, and separately by pattern for many hosts. It does not change.
type putInHost struct{ one, many map[string][]string }

// Put says what the rules of a configuration put in that is about to be published. What others before it put in is looked for as long as
// calls may go on that send it.
func (i *Injected) Put(rules []Rule) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	next := map[injection]bool{}
	for _, r := range rules {
		for key, headers := range r.Headers {
			on, err := reach.ParsePattern(key)
			if err != nil {
				continue // Check refuses it
			}
			for _, value := range headers {
				parts, _ := parseTemplate(value)
				for _, p := range parts {
					if p.secret != "" {
						next[injection{on.Host(), p.secret}] = true
					}
				}
			}
		}
	}
	before := map[injection]time.Time{}
	for one, until := range i.before {
		if now.Sub(until) < keepPut {
			before[one] = until
		}
	}
	for one := range i.last {
		before[one] = now
	}
	made := &putInHost{one: map[string][]string{}, many: map[string][]string{}}
	for one := range next {
		delete(before, one)
		made.add(one)
	}
	for one := range before {
		made.add(one)
	}
	i.last, i.before = next, before
	i.current.Store(made)
}

func (p *putInHost) add(one injection) {
	in := p.one
	if strings.HasPrefix(one.host, "*") {
		in = p.many
	}
	in[one.host] = append(in[one.host], one.secret)
}

// names returns the names of the secrets that are put into requests to a host, some of them twice. A nil i has none.
func (i *Injected) names(host string) (names []string) {
	if i == nil {
		return nil
	}
	made := i.current.Load()
	if made == nil {
		return nil
	}
	names = append(names, made.one[host]...)
	names = append(names, made.many["*"]...)
	for rest, more := host, len(made.many) > 0; more; {
		if _, rest, more = strings.Cut(rest, "."); more {
			names = append(names, made.many["*."+rest]...)
		}
	}
	return names
}
