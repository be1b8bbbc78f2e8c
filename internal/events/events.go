// Package events tells clients what happens to the tools of a server, as a stream of server-sent events.
//
// A [Log] follows the table and keeps the last events, within a bound of bytes. A [Door] sends each listener the events that it may see, from where
// it left off. Nothing is stored for a single listener: one that is so slow that its next event is no longer in the log is told to read the lists
// again.
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
	fileCleared  = "file.cleared" // the file was refused, but is no longer
	audited      = "audit"
	reset        = "reset"
)

// The states of a tool.
const (
	enabled    = "enabled"
	disabled   = "disabled"
	notGranted = "not_granted"
)

// An Event is something that has happened. Events of a tool are for everybody who may call the tool, and all others for administrators.
type Event struct {
	ID      string        `json:"id" description:"The event's id, which is only good for continuing after the event."`
	Kind    string        `json:"kind" enum:"tool.added,tool.changed,tool.removed,tool.switched,file.refused,file.cleared,audit" description:"What has happened."`
	Time    time.Time     `json:"time" description:"When."`
	Tool    string        `json:"tool,omitempty" description:"The path of the tool."`
	State   string        `json:"state,omitempty" enum:"enabled,disabled,not_granted" description:"The state of the tool; only an enabled tool can be called."`
	Version string        `json:"version,omitempty" description:"The module's version, as /tools has it."`
	Digest  string        `json:"digest,omitempty" description:"The SHA-256 of the module's file, as /tools has it."`
	File    string        `json:"file,omitempty" description:"The location of the file that is or was refused."`
	Reason  string        `json:"reason,omitempty" description:"Why the tool is disabled or the file refused."`
	Audit   *audit.Record `json:"audit,omitempty" description:"The entry of the audit."`

	number uint64 // counts the events of this process, from 1
}

// frame returns the event as it is sent.
func (e *Event) frame(to []byte) ([]byte, error) {
	data, err := json.Marshal(e) // the data is on one line: json.Marshal escapes what a client may take for the end of a line
	if err != nil {
		return to, err
	}
	to = append(append(append(append(to, "id: "...), e.ID...), "\nevent: "...), e.Kind...)
	return append(append(append(to, "\ndata: "...), data...), "\n\n"...), nil
}

// cost returns how many bytes an event counts for, including what is stored besides its texts.
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
	// batchEvents and batchBytes bound how much is sent at a time, and mostCached how much of it is kept for other listeners.
	batchEvents, batchBytes, mostCached = 1000, 256 << 10, 4 << 20
	// maxText is how many bytes a text of an event has at most.
	maxText = 4 << 10
)

// A Log keeps the last events. It is safe for concurrent use.
type Log struct {
	ids   *ids
	clean func(string) string
	end   func()

	following sync.Mutex            // held while two generations are compared; guards before
	before    *wasmtools.Generation // the last one

	mu      sync.Mutex
	events  []*Event // the oldest first
	bytes   int
	last    uint64        // the number of the last event
	coming  chan struct{} // closed when the next event comes; nil if nobody waits
	batches map[batchKey]*batch
	cached  int // bytes of batches
}

// NewLog returns a log that follows a table until Close. clean removes secrets from a text; if nil, texts are not changed.
func NewLog(table *wasmtools.RouteTable, clean func(string) string) *Log {
	if clean == nil {
		clean = func(s string) string { return s }
	}
	l := &Log{ids: newIDs(), clean: clean, before: table.Current(), batches: map[batchKey]*batch{}}
	l.end = table.Subscribe(l.follow) // if the table has changed since before was set, follow finds that with the next generation
	return l
}

// Close stops following the table. It can be called twice.
func (l *Log) Close() { l.end() }

// follow adds the events that lead to a generation.
func (l *Log) follow(g *wasmtools.Generation) {
	l.following.Lock()
	defer l.following.Unlock()
	all := difference(l.before, g)
	l.before = g
	l.add(all)
}

// AddAudit adds an event for an entry of the audit.
func (l *Log) AddAudit(r audit.Record) { l.add([]*Event{{Kind: audited, Time: r.Time, Audit: &r}}) }

// add stores events, and wakes the listeners that wait.
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

// position returns an id for the position after an event. The id is different each time, since otherwise a listener could tell from it whether there
// was an event that it must not see.
func (l *Log) position(number uint64) string { return l.ids.position(number) }

// find returns the number that an id stands for, and whether all later events are still kept.
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

// closed returns a closed channel.
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

// A batchKey identifies a batch: the events after a number that a view includes.
type batchKey struct {
	view  viewKey
	after uint64
}

// A batch is an encoded part of the stream. Listeners who see the same events share it.
type batch struct {
	once   sync.Once
	events []*Event
	text   []byte
	to     uint64 // the number of the last event that was looked at
}

// batch returns the encoded events after a number, of which there may be none, and the number to continue from. ok is false if some of these events
// are no longer kept.
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
		if l.batches[key] != b { // there are newer batches by now
			return
		}
		if l.cached += 200 + len(b.text); l.cached > mostCached {
			clear(l.batches)
			l.cached = 0
		}
	})
	return b.text, b.to, true
}

// encode writes the events that a view includes.
func (b *batch) encode(v *view) {
	for _, e := range b.events {
		if len(b.text) > batchBytes {
			break
		}
		if v.sees(e) {
			if text, err := e.frame(b.text); err == nil { // there is no error for any event that this package makes
				b.text = text
			}
		}
		b.to = e.number
	}
	b.events = nil
}

// A viewKey tells views apart. admin is a field of its own, so that no scope can be taken for it.
type viewKey struct {
	admin  bool
	scopes string
}

// A view says which events a listener may see.
type view struct {
	key       viewKey // the same for listeners that see the same events
	principal *wasmtools.Principal
	admin     bool
}

// newView returns the view of a principal. admin is whether it includes the events for administrators.
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
	// Last is the id to continue from. Missed is true if events after the requested id may no longer be kept.
	Last   string
	Missed bool
}

// After returns at most limit events that match: the oldest ones after an id, or the last ones of all if the id is empty.
func (l *Log) After(id string, limit int, match func(*Event) bool) (p Page) {
	number, ok := l.ids.number(id)
	l.mu.Lock()
	from, last := 0, l.last
	if ok = ok && l.has(number); ok {
		from = len(l.events) - int(last-number)
	}
	all := slices.Clone(l.events[from:]) // new events wait meanwhile
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

// Wait returns a channel that is closed once there is an event after an id. For an unknown id it is closed already.
func (l *Log) Wait(id string) <-chan struct{} {
	number, ok := l.find(id)
	if !ok {
		return closed()
	}
	return l.wait(number)
}
