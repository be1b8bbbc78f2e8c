// Package events tells those who listen what happens to the tools of a server, as a stream of server-sent events.
//
// A [Log] follows the table and keeps the last events, within a bound of bytes. A [Door] sends each listener those that it may see, from
// where it has left off. Nothing is kept for one listener: a reader that is too slow to find its place in the log is told to read the lists again.
package events

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// The kinds of events.
const (
	toolAdded    = "tool.added"
	toolChanged  = "tool.changed"
	toolRemoved  = "tool.removed"
	toolSwitched = "tool.switched"
	fileRefused  = "file.refused"
	fileCleared  = "file.cleared" // it was refused, and is not any more
	audited      = "audit"
	reset        = "reset"
)

// The states of a tool.
const (
	enabled    = "enabled"
	disabled   = "disabled"
	notGranted = "not_granted"
)

// An Event is something that has happened. Those with a tool are for all who may call it, the rest for administrators.
type Event struct {
	ID      string        `json:"id" description:"Its id, which serves only to continue from there."`
	Kind    string        `json:"kind" enum:"tool.added,tool.changed,tool.removed,tool.switched,file.refused,file.cleared,audit" description:"What has happened."`
	Time    time.Time     `json:"time" description:"When."`
	Tool    string        `json:"tool,omitempty" description:"The path of the tool."`
	State   string        `json:"state,omitempty" enum:"enabled,disabled,not_granted" description:"How it is now; only an enabled one can be called."`
	Version string        `json:"version,omitempty" description:"The module's version, as /tools has it."`
	Digest  string        `json:"digest,omitempty" description:"The SHA-256 of the module's file, as /tools has it."`
	File    string        `json:"file,omitempty" description:"The location of the file that is or was refused."`
	Reason  string        `json:"reason,omitempty" description:"Why the tool is disabled or the file refused."`
	Audit   *audit.Record `json:"audit,omitempty" description:"The entry of the audit."`

	number uint64 // of this process, from 1
}

// frame returns the event as it is sent.
func (e *Event) frame(to []byte) ([]byte, error) {
	data, err := json.Marshal(e) // on one line: it escapes what a client may take for the end of one
	if err != nil {
		return to, err
	}
	to = append(append(append(append(to, "id: "...), e.ID...), "\nevent: "...), e.Kind...)
	return append(append(append(to, "\ndata: "...), data...), "\n\n"...), nil
}

// cost returns what an event counts, with what is kept beside its texts.
func (e *Event) cost() int {
	n := 300 + len(e.Tool) + len(e.Version) + len(e.File) + len(e.Reason)
	if a := e.Audit; a != nil {
		n += 600 + len(a.Who) + len(a.Caller) + len(a.From) + len(a.Target) + len(a.Before) + len(a.After) + len(a.Refused)
	}
	return n
}

const (
	// most is how many events are kept, and mostBytes what they may take.
	most, mostBytes = 10_000, 8 << 20
	// batchEvents and batchBytes are how much is sent at a time, and mostCached what is kept of that for other listeners.
	batchEvents, batchBytes, mostCached = 1000, 256 << 10, 4 << 20
	// maxText is how many bytes a text of an event has at most.
	maxText = 4 << 10
)

// A Log has the last events. It is safe for concurrent use.
type Log struct {
	ids   *ids
	clean func(string) string
	end   func()

	following sync.Mutex            // held while a generation is compared; guards before
	before    *wasmtools.Generation // the last one

	mu      sync.Mutex
	events  []*Event // the oldest first
	bytes   int
	last    uint64        // the number of the last event
	coming  chan struct{} // closed with the next event; if nil, nobody waits
	batches map[batchKey]*batch
	cached  int // bytes of batches
}

// NewLog returns a log that follows a table until Close. clean takes secrets out of a text; if nil, there are none.
func NewLog(table *wasmtools.RouteTable, clean func(string) string) *Log {
	if clean == nil {
		clean = func(s string) string { return s }
	}
	l := &Log{ids: newIDs(), clean: clean, before: table.Current(), batches: map[batchKey]*batch{}}
	l.end = table.Subscribe(l.follow) // what came in between shows in the next generation
	return l
}

// Close ends the following. It can be called twice.
func (l *Log) Close() { l.end() }

// follow adds what is new in a generation.
func (l *Log) follow(g *wasmtools.Generation) {
	l.following.Lock()
	defer l.following.Unlock()
	all := difference(l.before, g)
	l.before = g
	l.add(all)
}

// AddAudit adds an entry of the audit.
func (l *Log) AddAudit(r audit.Record) { l.add([]*Event{{Kind: audited, Time: r.Time, Audit: &r}}) }

// add keeps events, and wakes those who wait.
func (l *Log) add(all []*Event) {
	if len(all) == 0 {
		return
	}
	for _, e := range all {
		for _, s := range []*string{&e.File, &e.Reason, &e.Version} {
			if *s != "" {
				*s = text.Clip(l.clean(strings.ToValidUTF8(*s, "\ufffd")), maxText)
			}
		}
		e.Time = e.Time.UTC().Truncate(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range all {
		l.last++
		e.number, e.ID = l.last, l.ids.of(l.last)
		l.bytes += e.cost()
	}
	l.events = append(l.events, all...)
	drop := 0
	for ; len(l.events)-drop > most || l.bytes > mostBytes; drop++ {
		l.bytes -= l.events[drop].cost()
		l.events[drop] = nil
	}
	l.events = l.events[drop:]
	clear(l.batches)
	l.cached = 0
	if l.coming != nil {
		close(l.coming)
		l.coming = nil
	}
}

// Last returns the number of the last event.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// position returns an id for the place behind an event. It is another one each time, since otherwise it would tell a listener whether
// something has happened that it must not see.
func (l *Log) position(number uint64) string { return l.ids.position(number) }

// find returns the number of an id, and whether all later events are still kept.
func (l *Log) find(id string) (number uint64, ok bool) {
	number, ok = l.ids.number(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	return number, ok && l.has(number)
}

// has reports whether all events after a number are kept. l.mu is held.
func (l *Log) has(number uint64) bool {
	return number <= l.last && l.last-number <= uint64(len(l.events))
}

// closed returns a channel that is.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// wait returns a channel that is closed once there is an event after a number.
func (l *Log) wait(number uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last > number {
		return closed()
	}
	if l.coming == nil {
		l.coming = make(chan struct{})
	}
	return l.coming
}

// A batchKey names events in the form in which they are sent: those after a number that somebody sees.
type batchKey struct {
	view  viewKey
	after uint64
}

// A batch is events as they are sent. Listeners who see the same share it.
type batch struct {
	once   sync.Once
	events []*Event
	text   []byte
	to     uint64 // the number of the last event that was looked at
}

// batch returns what is to be sent of the events after a number, which may be nothing, and the number to go on with. It reports false where
// some of them are not kept any more.
func (l *Log) batch(v *view, after uint64) (text []byte, to uint64, ok bool) {
	l.mu.Lock()
	if !l.has(after) {
		l.mu.Unlock()
		return nil, 0, false
	}
	key := batchKey{v.key, after}
	b := l.batches[key]
	if b == nil {
		from := len(l.events) - int(l.last-after)
		b = &batch{events: slices.Clone(l.events[from:min(len(l.events), from+batchEvents)]), to: after}
		l.batches[key] = b
	}
	l.mu.Unlock()
	b.once.Do(func() {
		b.encode(v)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.batches[key] != b { // there are others by now
			return
		}
		if l.cached += 200 + len(b.text); l.cached > mostCached {
			clear(l.batches)
			l.cached = 0
		}
	})
	return b.text, b.to, true
}

// encode writes the events that a view has.
func (b *batch) encode(v *view) {
	for _, e := range b.events {
		if len(b.text) > batchBytes {
			break
		}
		if v.sees(e) {
			if text, err := e.frame(b.text); err == nil { // which holds for all that are made here
				b.text = text
			}
		}
		b.to = e.number
	}
	b.events = nil
}

// A viewKey tells views apart. No scope is taken for what administrators see.
type viewKey struct {
	admin  bool
	scopes string
}

// A view is what a listener sees.
type view struct {
	key       viewKey // of listeners who see the same
	principal *wasmtools.Principal
	admin     bool
}

// newView returns the view of a principal. admin is whether it sees what is for administrators.
func newView(p *wasmtools.Principal, admin bool) *view {
	v := &view{principal: p, admin: admin}
	switch {
	case v.admin:
		v.key.admin = true
	case p.MayAll():
		v.key.scopes = "*"
	default:
		v.key.scopes = strings.Join(p.Scopes(), "\n")
	}
	return v
}

func (v *view) sees(e *Event) bool { return v.admin || e.Tool != "" && v.principal.May(e.Tool) }

// A Page is a part of the events, for administrators.
type Page struct {
	Events []Event
	// Last is the id to go on with, and Missed whether there may be events after the id that was asked for that are not kept any more.
	Last   string
	Missed bool
}

// After returns events that match: after an id, the oldest ones, or for an empty id the last ones. There are at most as many as limit says.
func (l *Log) After(id string, limit int, match func(*Event) bool) (p Page) {
	number, ok := l.ids.number(id)
	l.mu.Lock()
	from, last := 0, l.last
	if ok = ok && l.has(number); ok {
		from = len(l.events) - int(last-number)
	}
	all := slices.Clone(l.events[from:]) // what is added waits meanwhile
	l.mu.Unlock()
	p.Events = []Event{}
	if ok {
		for _, e := range all {
			switch {
			case !match(e):
			case len(p.Events) == limit:
				p.Last = p.Events[limit-1].ID
				return p
			default:
				p.Events = append(p.Events, *e)
			}
		}
		p.Last = l.position(last)
		return p
	}
	p.Missed = id != ""
	for _, e := range slices.Backward(all) {
		if len(p.Events) == limit {
			break
		}
		if match(e) {
			p.Events = append(p.Events, *e)
		}
	}
	slices.Reverse(p.Events)
	p.Last = l.position(last)
	return p
}

// Wait returns a channel that is closed once there is an event after an id. It is closed already for an id of which nothing is known.
func (l *Log) Wait(id string) <-chan struct{} {
	number, ok := l.find(id)
	if !ok {
		return closed()
	}
	return l.wait(number)
}
