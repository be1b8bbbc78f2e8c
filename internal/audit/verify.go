package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A BrokenError says where the chain is broken.
type BrokenError struct{ Reason string }

func (e *BrokenError) Error() string { return "the audit was altered: " + e.Reason }

// ErrDropped is returned if a known hash belongs to an entry that is no longer kept, so that it could not be compared.
var ErrDropped = errors.New("is no longer kept, so its hash can't be compared")

// Verify checks all entries. The error is a *BrokenError if one was changed, removed or inserted afterwards. Missing entries at the end can only be
// noticed by hashes that are known from elsewhere, such as log lines: known has these hashes by the numbers of their entries. If all else is right,
// but a known entry was dropped because of its age, the error wraps ErrDropped: somebody who rewrites all entries can give them any numbers.
func (l *Log) Verify(ctx context.Context, known map[uint64]string) (Ends, error) {
	// Only one caller at a time waits for the turn to verify. So a change waits for one verification at most, however many callers verify.
	select {
	case l.walking <- struct{}{}:
		defer func() { <-l.walking }()
	case <-ctx.Done():
		return Ends{}, context.Cause(ctx)
	}
	// Nothing is appended meanwhile, for a second at most: a chain that grows at one end and is cut at the other could not be judged.
	if err := l.take(ctx); err != nil {
		return Ends{}, err
	}
	defer l.give()
	s, err := l.space()
	if err != nil {
		return Ends{}, nil
	}
	var was chain // the chain as this process knew it
	if l.loaded {
		was = l.chain
	}
	var found chain
	for range maxTurns {
		l.loaded = false
		if err = l.load(ctx, s); err != nil {
			break
		}
		found = l.chain
		if err = l.walk(ctx, s, known); err == nil || errors.Is(err, ErrDropped) {
			if changed := l.follows(ctx, s, was); changed != nil {
				err = changed
			}
		}
		if _, isBroken := errors.AsType[*BrokenError](err); !isBroken {
			return found.ends(), err
		}
		// Another process may have added or dropped an entry meanwhile.
		l.loaded = false
		if l.load(ctx, s) != nil || l.chain == found {
			break
		}
	}
	if was.last.Number > 0 { // so that the next call reports it again
		l.chain, l.loaded = was, true
	}
	switch _, isBroken := errors.AsType[*BrokenError](err); {
	case isBroken:
		return found.ends(), err
	case errors.Is(err, state.ErrUnavailable) || ctx.Err() != nil:
		return Ends{}, fmt.Errorf("read the audit: %w", err)
	}
	return Ends{}, &BrokenError{err.Error()}
}

// follows returns an error if the last entry that this process knew has changed or is gone. Other processes may have added entries after it.
func (l *Log) follows(ctx context.Context, s state.Space, was chain) error {
	switch number := was.last.Number; {
	case number > l.chain.last.Number:
		return &BrokenError{fmt.Sprintf("the last entry is %d, but it was %d", l.chain.last.Number, number)}
	case number <= l.chain.dropped.Number:
		return nil
	default:
		_, hash, err := read(ctx, s, number)
		if err == nil && hash.String() != was.last.Hash {
			err = &BrokenError{fmt.Sprintf("entry %d was altered", number)}
		}
		return err
	}
}

func (l *Log) walk(ctx context.Context, s state.Space, known map[uint64]string) error {
	before := l.chain.dropped
	if _, err := parseHash(before.Hash); before.Number > 0 && err != nil {
		return &BrokenError{"the hash of the entries that were dropped is gone"}
	}
	if err := l.strangers(ctx, s); err != nil {
		return err
	}
	for number := before.Number + 1; number <= l.chain.last.Number; number++ {
		e, hash, err := read(ctx, s, number)
		switch {
		case err == nil:
		case errors.Is(err, state.ErrUnavailable) || ctx.Err() != nil:
			return err
		default:
			return &BrokenError{err.Error()}
		}
		switch want, ok := known[number]; {
		case e.Number != number:
			return &BrokenError{fmt.Sprintf("entry %d says that it is entry %d", number, e.Number)}
		case e.Previous != before.Hash && before.Number == 0:
			return &BrokenError{fmt.Sprintf("entry %d is not the first one: those before it are missing", number)}
		case e.Previous != before.Hash:
			return &BrokenError{fmt.Sprintf("entry %d does not follow entry %d: one of them was altered", number, before.Number)}
		case ok && want != hash.String():
			return &BrokenError{fmt.Sprintf("entry %d has the hash %s, but it had %s", number, hash, want)}
		}
		before = end{number, hash.String()}
	}
	dropped := l.chain.dropped
	// No entry is dropped while there is room for it. A version of toolsrv that keeps more entries has to know how many earlier versions kept.
	if kept := before.Number - dropped.Number; dropped.Number > 0 && kept < l.options.Most {
		return &BrokenError{fmt.Sprintf("entries are missing at the beginning or at the end: %d are left, beginning with number %d, but none are dropped until there are %d", kept, dropped.Number+1, l.options.Most)}
	}
	var old error
	for _, number := range slices.Sorted(maps.Keys(known)) {
		switch {
		case number > before.Number:
			return &BrokenError{fmt.Sprintf("entry %d %s: the last one is %d", number, errMissing, before.Number)}
		case number > dropped.Number: // compared above
		case number < dropped.Number || number == 0:
			old = fmt.Errorf("entry %d %w: the first one is %d: name a later one", number, ErrDropped, dropped.Number+1)
		case known[number] != dropped.Hash:
			return &BrokenError{fmt.Sprintf("entry %d has the hash %s, but it had %s", number, dropped.Hash, known[number])}
		}
	}
	return old
}

// strangers finds records that no Log has stored: there must be one record for each number from the first to the last.
func (l *Log) strangers(ctx context.Context, s state.Space) error {
	usage, err := s.Usage(ctx)
	if err != nil {
		return err
	}
	want := int64(l.chain.last.Number - l.chain.dropped.Number)
	if l.chain.dropped.Number > 0 {
		want++
	}
	if usage.Entries != want {
		return &BrokenError{fmt.Sprintf("there are %d records, but there should be %d", usage.Entries, want)}
	}
	return nil
}
