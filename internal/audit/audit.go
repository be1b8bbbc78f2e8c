// Package audit records who changed what, and who tried to. Entries are only ever added, and each contains the hash of the entry before it. So an
// entry that is changed, removed or inserted later is found when the chain is verified.
package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/metrics/counters"
	"github.com/toolsrv/toolsrv/internal/state"
)

// Space is the name of the space with the entries, and Form the newest format of its records.
const (
	Space      = "audit"
	Form  byte = 1
)

// Most is how many entries are kept.
const Most = 100_000

// Refused attempts cost whoever makes them nothing, so they must not push out the entries of changes. After some refused attempts in a row, only
// one every ten minutes gets an entry, which says how many there were since the entry before. Identified callers have a separate budget of the same
// size, so that strangers can't hide what those callers try.
const (
	refusals     = 100
	refusalEvery = 10 * time.Minute
)

// ErrNotKept is returned if an entry could not be kept, and so a change was not made.
var ErrNotKept = errors.New("the audit can't be stored")

// errNoState is returned in a program that embeds the server without a state.
var errNoState = errors.New("there is no state to store it in: name a directory under [state]")

// Options say where a Log keeps its entries.
type Options struct {
	// Space returns the space, or nil while there is no state.
	Space func() state.Space
	// Strict reports whether a change is made only if its entry can be stored. If nil, changes are always made; the log has the entry.
	Strict func() bool
	// Clean removes secrets from a text. If nil, texts are not changed.
	Clean func(string) string
	// Logger gets a line for each entry, with audit=true. If nil, there are no lines.
	Logger *slog.Logger
	// Kept is called with each entry that was stored, in their order, and must be fast. It may be nil.
	Kept func(Record)
	// Now returns the time. If nil, time.Now is used.
	Now func() time.Time
	// Most is how many entries are kept; 0 means [Most].
	Most uint64
}

// A Log reads and adds entries. It is safe for concurrent use. A process has one Log for a space; several processes can share the space.
type Log struct {
	options Options
	turn    chan struct{} // holds a value while nobody appends or verifies: an entry needs the hash of the one before
	walking chan struct{} // holds a value while somebody verifies, or waits for the turn to verify

	// What follows belongs to the goroutine that has the turn.
	loaded bool  // chain is as it is in the space
	chain  chain // the ends of the chain

	changes        *counters.Map[Kind, atomic.Uint64]
	refused, lost  atomic.Uint64
	omitted        atomic.Int64 // refused attempts that no entry has counted yet
	known, unknown bucket
}

// A Kind is a kind of change: what was to be done, and whether it failed.
type Kind struct {
	Action string
	Failed bool
}

// kinds is how many kinds there can be. Actions are names from the program, never from a request.
const kinds = 1000

// Changes returns how many changes there were of each kind since the process began.
func (l *Log) Changes() iter.Seq2[Kind, *atomic.Uint64] { return l.changes.All() }

// Refused returns how many attempts have been refused.
func (l *Log) Refused() uint64 { return l.refused.Load() }

// Lost returns how many entries could not be stored.
func (l *Log) Lost() uint64 { return l.lost.Load() }

// New returns a Log. It does not read the space yet.
func New(o Options) *Log {
	if o.Strict == nil {
		o.Strict = func() bool { return false }
	}
	if o.Clean == nil {
		o.Clean = func(s string) string { return s }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Kept == nil {
		o.Kept = func(Record) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Most == 0 {
		o.Most = Most
	}
	l := &Log{options: o, changes: counters.New[Kind, atomic.Uint64](kinds, Kind{Action: "other"}), turn: make(chan struct{}, 1), walking: make(chan struct{}, 1), known: bucket{left: refusals}, unknown: bucket{left: refusals}}
	l.turn <- struct{}{}
	return l
}

// Change stores the entry, and then makes the change. If the change fails, a second entry says so. If the entry can't be stored, a strict log fails
// with ErrNotKept, and others make the change all the same. Once the entry is stored, the change is made even if the caller has gone: otherwise
// callers could fill the log with changes that are never made.
func (l *Log) Change(ctx context.Context, e Entry, change func(ctx context.Context) error) (err error) {
	defer func() { l.changes.Of(Kind{e.Action, err != nil}).Add(1) }()
	if err := l.Append(ctx, e); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.options.Strict() {
			return fmt.Errorf("%w, and with [audit] strict = true nothing can be changed then: %w", ErrNotKept, err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	if err = change(ctx); err != nil {
		e.Refused = err.Error()
		_ = l.Append(ctx, e) // an error is logged
	}
	return err
}

// Refuse records an attempt that was refused; e.Refused says why. If there are many, most are only counted. An entry without an Origin is a
// stranger's.
func (l *Log) Refuse(ctx context.Context, e Entry) {
	l.refused.Add(1)
	bucket := &l.known
	if e.Origin == "" {
		bucket = &l.unknown
	}
	if !bucket.take(l.options.Now()) {
		l.omitted.Add(1)
		return
	}
	_ = l.Append(context.WithoutCancel(ctx), e) // an error is logged
}

// Append adds an entry. It sets the entry's number, its time and the hash of the entry before, and shortens texts that are too long. When Append
// returns nil, the entry is on disk; an error is logged with the entry.
func (l *Log) Append(ctx context.Context, e Entry) error {
	e.bound(l.options.Clean)
	e.Time = l.options.Now().UTC()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	e.Omitted = l.omitted.Swap(0)
	hash, err := l.append(context.WithoutCancel(ctx), &e) // the entry is written even if the caller has gone
	if err != nil {
		l.omitted.Add(e.Omitted)
		l.lost.Add(1)
		l.options.Logger.Error("an entry of the audit could not be stored", append(e.attrs(), slog.Any("error", err))...)
		return err
	}
	l.options.Kept(Record{e, hash.String()})
	l.options.Logger.Info("audit", append(e.attrs(), slog.Uint64("number", e.Number), slog.String("hash", hash.String()))...)
	return nil
}

// Close adds an entry for the refused attempts that no entry has counted.
func (l *Log) Close() {
	if n := l.omitted.Load(); n > 0 {
		_ = l.Append(context.Background(), Entry{Action: "refused", Refused: "attempts without entries of their own"})
	}
}

// take waits until nobody else appends or verifies.
func (l *Log) take(ctx context.Context) error {
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Log) give() { l.turn <- struct{}{} }

// space returns the space.
func (l *Log) space() (state.Space, error) {
	if s := l.options.Space(); s != nil {
		return s, nil
	}
	return nil, errNoState
}
