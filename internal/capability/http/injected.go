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

// keepPut is how long a secret is looked for after the last configuration that injected it: twice the longest time that a call can take.
const keepPut = 2 * time.Hour

// Injected knows which secrets the host puts into requests to which hosts, for any grant. A service may show one caller what another has sent, even
// at another port. So whatever comes from a host is searched for all secrets that are sent to it. Injected is safe for concurrent use, and its zero
// value knows no secrets.
type Injected struct {
	mu      sync.Mutex              // guards the fields below, except current
	inForce putIn                   // what the configuration in force injects
	next    putIn                   // what the newest configuration injects, which may never be put in force
	before  map[injection]time.Time // what earlier configurations injected, and until about when they were in force
	current atomic.Pointer[putInHost]
}

// putIn is what a configuration injects. values are its secrets, which know whether the configuration was in force. If values is nil, there is no
// configuration.
type putIn struct {
	values *secret.Values
	all    map[injection]bool
}

// An injection is a secret that is put into requests to a host. The host may begin with "*.", or be "*".
type injection struct{ host, secret string }

// putInHost has the names of secrets by host, and separately by pattern for many hosts. It does not change.
type putInHost struct{ one, many map[string][]string }

// Put notes what the rules of a new configuration inject, which may be published later. Answers are searched for what the configuration in force
// injects. They are also searched for what earlier configurations injected, as long as calls that send it may still run.
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

// injections returns what rules inject.
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

// names returns the names of the secrets that are put into requests to a host. A name may appear twice. A nil i has no names.
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
