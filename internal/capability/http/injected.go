package http

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/secret"
)

// keepPut is how long a secret is looked for after the last configuration that had it put in: twice the longest time that a call can
// take.
const keepPut = 2 * time.Hour

// Injected knows which secrets the host puts into requests, by whichever grant, and to which hosts. A service may show one caller what
// another has sent, at another port as well. So whatever comes from a host is searched for all that is put in there. It is safe for
// concurrent use, and its zero value knows nothing.
type Injected struct {
	mu      sync.Mutex              // guards what follows, but current
	inForce putIn                   // of the configuration in force
	next    putIn                   // of the one that was made last, which may never be
	before  map[injection]time.Time // of those that were in force before, and about until when
	current atomic.Pointer[putInHost]
}

// putIn is what a configuration puts in. values are its secrets, which know whether it was in force; if nil, there is none.
type putIn struct {
	values *secret.Values
	all    map[injection]bool
}

// An injection is a secret that is put into requests to a host, which may begin with "*.", or be "*".
type injection struct{ host, secret string }

// putInHost has the names of secrets by host, and separately by pattern for many hosts. It does not change.
type putInHost struct{ one, many map[string][]string }

// Put says what the rules of a configuration put in that is made, with its secrets, and may be published. What the one in force puts in is looked for,
// and what others before it did for as long as calls may go on that send it.
func (i *Injected) Put(rules []Rule, values *secret.Values) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if next := i.next; next.values != nil && next.values.WasInForce() {
		if i.before == nil {
			i.before = map[injection]time.Time{}
		}
		for one := range i.inForce.all {
			i.before[one] = now
		}
		i.inForce = next
	}
	i.next = putIn{values, injections(rules)}
	maps.DeleteFunc(i.before, func(_ injection, until time.Time) bool { return now.Sub(until) >= keepPut })
	all := map[injection]bool{}
	maps.Copy(all, i.inForce.all)
	maps.Copy(all, i.next.all)
	for one := range i.before {
		all[one] = true
	}
	made := &putInHost{one: map[string][]string{}, many: map[string][]string{}}
	for one := range all {
		made.add(one)
	}
	i.current.Store(made)
}

// injections returns what rules put in.
func injections(rules []Rule) map[injection]bool {
	all := map[injection]bool{}
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
						all[injection{on.Host(), p.secret}] = true
					}
				}
			}
		}
	}
	return all
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
