package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Path is where a Door is mounted.
const Path = "/events"

const (
	// keepAlive is how often a listener is sent something, so that neither a proxy nor the client takes the connection for dead.
	keepAlive = 25 * time.Second
	// breather is the shortest time between two writes to a listener, so that many changes at once cause only a few writes.
	breather = 250 * time.Millisecond
	// leastRetry and mostRetry bound the random time after which a client whose stream has ended should connect again, so that
	// not all clients do so at once.
	leastRetry, mostRetry = time.Second, 5 * time.Second
)

// Options are the settings of a Door. The zero value is usable.
type Options struct {
	// Places limits how many streams there can be. If nil, 10,000.
	Places *web.Places
	// Off reports whether the door is switched off in a generation; nil means the current one. It is called concurrently. If nil, the door is never
	// switched off.
	Off func(g *wasmtools.Generation) bool
	// Admin reports whether this door sends administrators the events that are for them alone. It is called concurrently. If nil, it does not.
	Admin func() bool
}

// A Door sends the events of a log to listeners. It must be mounted at Path.
type Door struct {
	log       *Log
	options   Options
	listeners atomic.Int64
}

var _ web.Door = (*Door)(nil)

// NewDoor returns the door of a log.
func NewDoor(log *Log, o Options) *Door {
	if o.Places == nil {
		o.Places = web.NewPlaces(10_000)
	}
	if o.Off == nil {
		o.Off = func(*wasmtools.Generation) bool { return false }
	}
	if o.Admin == nil {
		o.Admin = func() bool { return false }
	}
	return &Door{log: log, options: o}
}

// IsOff reports whether the door is switched off in a generation; nil means the current one.
func (d *Door) IsOff(g *wasmtools.Generation) bool { return d.options.Off(g) }

// State returns how many listeners there are.
func (d *Door) State() (listeners int) { return int(d.listeners.Load()) }

// Serve answers one listener, until it goes away or the service ends its streams.
func (d *Door) Serve(x *web.Exchange) {
	if !x.Allow(http.MethodGet) {
		return
	}
	x.SetOperation("events")
	leave, err := d.options.Places.Take(x)
	if err != nil {
		x.Fail(err)
		return
	}
	defer leave()
	d.listeners.Add(1)
	defer d.listeners.Add(-1)
	l := &listener{x: x, door: d, log: d.log}
	l.view = l.viewOf(x.Call().Principal)
	l.serve(x.Request().Header["Last-Event-Id"])
}

// A listener is a stream of events.
type listener struct {
	x    *web.Exchange
	door *Door
	log  *Log
	view *view
	at   uint64 // the number of the last event that was looked at
}

// viewOf returns the view of a principal. Usually that is the view that the listener has already.
func (l *listener) viewOf(p *wasmtools.Principal) *view {
	admin := p.Has(wasmtools.RoleAdminRead) && l.door.options.Admin() && l.x.IsOwnPage()
	if v := l.view; v != nil && v.principal == p && v.admin == admin {
		return v
	}
	return newView(p, admin)
}

// serve sends events as they happen. ids are the values of Last-Event-ID.
func (l *listener) serve(ids []string) {
	ctx := l.x.StreamEvents()
	if l.begin(ids) != nil {
		return
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-alive.C:
			if _, err = l.identify(); err == nil {
				// A client that connects again continues from this position, even if the last event that it saw is no longer kept.
				err = l.write(fmt.Appendf(nil, ":\nid: %s\n\n", l.log.position(l.at)))
			}
		case <-l.x.Recheck():
			_, err = l.identify()
		case <-l.log.wait(l.at):
			err = l.tell(ctx)
		}
		if err != nil {
			return
		}
	}
}

// begin sends the first part of the stream: when to connect again, and the listener's position, or that it may have missed events.
func (l *listener) begin(ids []string) error {
	retry := fmt.Appendf(nil, "retry: %d\n", (leastRetry + rand.N(mostRetry-leastRetry)).Milliseconds())
	l.at = l.log.Last()
	if len(ids) == 0 || len(ids) == 1 && ids[0] == "" {
		return l.write(fmt.Appendf(retry, "id: %s\n\n", l.log.position(l.at)))
	}
	if number, ok := l.log.find(ids[0]); ok && len(ids) == 1 {
		l.at = number
		return l.write(append(retry, '\n'))
	}
	return l.reset(retry)
}

// reset tells the listener that it may have missed events, and continues with those to come.
func (l *listener) reset(before []byte) error {
	l.at = l.log.Last()
	e := Event{ID: l.log.position(l.at), Kind: reset, Time: time.Now().UTC().Truncate(time.Millisecond), Reason: "Earlier events are no longer known, or what you may see has changed: read the lists again"}
	text, err := e.frame(before)
	return cmp.Or(err, l.write(text))
}

// errOff ends a stream.
var errOff = errors.New("events are switched off")

// identify identifies the listener again. changed reports whether it may now see other events than before; then it has been sent a reset.
func (l *listener) identify() (changed bool, err error) {
	p, err := l.x.Identify()
	if err != nil {
		return false, err
	}
	if l.door.IsOff(nil) {
		return false, errOff
	}
	before, now := l.view, l.viewOf(p)
	if l.view = now; now.key == before.key {
		return false, nil
	}
	return true, l.reset(nil)
}

// tell sends the events that have come.
func (l *listener) tell(ctx context.Context) error {
	told := false
	for l.log.Last() > l.at {
		text, to, ok := l.log.batch(l.view, l.at)
		// The listener is identified after the events are encoded, so that its permissions are never older than the events.
		if changed, err := l.identify(); changed || err != nil {
			return err
		}
		if !ok {
			return l.reset(nil)
		}
		l.at = to
		if len(text) == 0 {
			continue
		}
		if err := l.write(text); err != nil {
			return err
		}
		told = true
	}
	if !told { // no pause: its length would give away events that the listener must not see
		return nil
	}
	pause := time.NewTimer(breather)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return nil
}

// write sends a part of the stream.
func (l *listener) write(text []byte) error {
	if _, err := l.x.Write(text); err != nil {
		return err
	}
	return l.x.FlushError()
}
