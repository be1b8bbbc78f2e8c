package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A chain says with which entries the audit begins and ends.
type chain struct {
	dropped end // the last entry that was dropped; zero if none was
	last    end // the last entry; zero if there is none yet
}

// An end is an entry, by its number and its hash.
type end struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
}

// The keys of the space: one for each entry, in the order of their numbers, and one for the last entry that was dropped.
const (
	entryPrefix = "entry/"
	droppedKey  = "dropped"
)

func entryKey(number uint64) string { return fmt.Sprintf("%s%016x", entryPrefix, number) }

// numberOf returns the number of the entry with a key.
func numberOf(key string) (uint64, error) {
	number, err := strconv.ParseUint(strings.TrimPrefix(key, entryPrefix), 16, 62) // so that additions don't overflow
	if err != nil || key != entryKey(number) {
		return 0, fmt.Errorf("%.60q is not the key of an entry", key)
	}
	return number, nil
}

// recordBytes is the largest size of a record; records are much smaller.
const recordBytes = 64 << 10

// hashOf returns the hash of a record without its first byte, which says the format.
func hashOf(record []byte) Hash { return sha256.Sum256(record[1:]) }

// errMissing is returned for an entry that does not exist.
var errMissing = errors.New("is missing")

// read returns an entry and its hash.
func read(ctx context.Context, s state.Space, number uint64) (e Entry, hash Hash, err error) {
	kept, ok, err := s.Get(ctx, entryKey(number), recordBytes)
	switch {
	case err != nil:
		return e, hash, fmt.Errorf("read entry %d: %w", number, err)
	case !ok:
		return e, hash, fmt.Errorf("entry %d %w", number, errMissing)
	}
	if err := state.Decode(kept.Value, Form, &e); err != nil {
		return e, hash, fmt.Errorf("entry %d: %w", number, err)
	}
	return e, hashOf(kept.Value), nil
}

// load finds the ends of the chain, if they are not known.
func (l *Log) load(ctx context.Context, s state.Space) error {
	if l.loaded {
		return nil
	}
	var c chain
	kept, ok, err := s.Get(ctx, droppedKey, recordBytes)
	if err != nil {
		return err
	}
	if ok {
		if err := state.Decode(kept.Value, Form, &c.dropped); err != nil {
			return err
		}
		// The dropped entry may still be there, if the process ended before it was deleted.
		if _, err := s.Delete(ctx, entryKey(c.dropped.Number), state.Any); err != nil {
			return err
		}
	}
	c.last = c.dropped
	number, err := lastNumber(ctx, s, c.dropped.Number)
	if err != nil {
		return err
	}
	if number > c.dropped.Number {
		_, hash, err := read(ctx, s, number)
		if err != nil {
			return err
		}
		c.last = end{number, hash.String()}
	}
	l.chain, l.loaded = c, true
	return nil
}

// catchUp finds the ends of the chain if they are not known, or another process has added entries. It must be called before an entry is added: the
// number after the last known one may have been used and dropped since.
func (l *Log) catchUp(ctx context.Context, s state.Space) error {
	if l.loaded {
		keys, _, err := s.List(ctx, entryPrefix, entryKey(l.chain.last.Number), 1)
		l.loaded = err == nil && len(keys) == 0
	}
	return l.load(ctx, s)
}

// lastNumber returns the number of the last entry, or after if there is no entry after that number. A space can only be listed forwards, so the
// number is found by a binary search.
func lastNumber(ctx context.Context, s state.Space, after uint64) (last uint64, err error) {
	exists := func(n uint64) (bool, error) { // reports whether there is an entry after n
		keys, _, err := s.List(ctx, entryPrefix, entryKey(n), 1)
		if err == nil && len(keys) > 0 {
			_, err = numberOf(keys[0])
		}
		return len(keys) > 0, err
	}
	low, step := after, uint64(1)
	for more := true; more; step *= 2 {
		if more, err = exists(low + step - 1); err != nil {
			return 0, err
		}
		if more {
			low += step
		}
	}
	// Either there is an entry at low, or there is none at all. There is none from low+step on.
	for ; step > 0; step /= 2 {
		more, err := exists(low + step - 1)
		if err != nil {
			return 0, err
		}
		if more {
			low += step
		}
	}
	return low, nil
}

// maxTurns is how often adding an entry is tried again because another process was faster. Each time, one of the processes has added its entry, so
// all make progress.
const maxTurns = 100

// append adds an entry at the end.
func (l *Log) append(ctx context.Context, e *Entry) (hash Hash, err error) {
	s, err := l.space()
	if err != nil {
		return hash, err
	}
	for range maxTurns {
		if hash, err = l.put(ctx, s, e); !errors.Is(err, state.ErrConflict) { // otherwise another process has added an entry
			break
		}
	}
	if err != nil {
		return hash, err
	}
	if err := l.drop(ctx, s); err != nil {
		l.loaded = false
		l.options.Logger.Error("old entries of the audit can't be dropped", slog.Any("error", err))
	}
	return hash, nil
}

// put stores an entry at the end of the chain.
func (l *Log) put(ctx context.Context, s state.Space, e *Entry) (hash Hash, err error) {
	if err := l.catchUp(ctx, s); err != nil {
		return hash, fmt.Errorf("find the end of the audit: %w", err)
	}
	e.Number, e.Previous = l.chain.last.Number+1, l.chain.last.Hash
	record, err := state.Encode(Form, e)
	if err != nil {
		return hash, err
	}
	if _, err := s.Set(ctx, entryKey(e.Number), record, state.Absent, state.SetOptions{}); err != nil {
		l.loaded = false // the entry may have been stored in spite of the error
		return hash, err
	}
	hash = hashOf(record)
	l.chain.last = end{e.Number, hash.String()}
	return hash, nil
}

// drop removes the oldest entries if there are too many. The hash of the last removed entry is stored, so that the chain has a beginning.
func (l *Log) drop(ctx context.Context, s state.Space) error {
	for l.chain.last.Number-l.chain.dropped.Number > l.options.Most {
		kept, _, err := s.Get(ctx, droppedKey, recordBytes)
		if err != nil {
			return err
		}
		var before end
		if kept.Version != 0 && state.Decode(kept.Value, Form, &before) == nil && l.chain.dropped.Number < before.Number { // another process has dropped entries
			was := l.chain
			if before.Number <= was.last.Number {
				l.chain.dropped = before
			} else if err := l.catchUp(ctx, s); err != nil { // others have added so many entries since that this one's was dropped
				return err
			}
			if l.chain != was {
				continue
			}
		}
		number := l.chain.dropped.Number + 1
		dropped := end{Number: number}
		switch _, hash, err := read(ctx, s, number); {
		case err == nil:
			dropped.Hash = hash.String()
		case errors.Is(err, state.ErrUnavailable):
			return err
		} // otherwise somebody has altered the entry, but it must still be dropped, and so must later ones
		record, err := state.Encode(Form, dropped)
		if err != nil {
			return err
		}
		switch _, err := s.Set(ctx, droppedKey, record, int64(kept.Version), state.SetOptions{}); {
		case errors.Is(err, state.ErrConflict):
			continue // another process was faster
		case err != nil:
			return err
		}
		if _, err := s.Delete(ctx, entryKey(number), state.Any); err != nil {
			return err
		}
		l.chain.dropped = dropped
	}
	return nil
}

// Ends says with which entries the audit begins and ends.
type Ends struct {
	First uint64 `json:"first"` // the number of the first entry
	Last  uint64 `json:"last"`  // the number of the last entry; 0 if there is none
	Hash  string `json:"hash"`  // the hash of the last entry
}

// Ends returns the ends, including entries that other processes have added.
func (l *Log) Ends(ctx context.Context) (Ends, error) {
	if err := l.take(ctx); err != nil {
		return Ends{}, err
	}
	defer l.give()
	s, err := l.space()
	if err != nil {
		return Ends{}, nil // there never was an entry
	}
	if err := l.catchUp(ctx, s); err != nil {
		return Ends{}, fmt.Errorf("read the audit: %w", err)
	}
	return l.chain.ends(), nil
}

func (c chain) ends() Ends {
	if c.last.Number == 0 {
		return Ends{}
	}
	return Ends{c.dropped.Number + 1, c.last.Number, c.last.Hash}
}

// List returns the entries after a number, at most limit of them. If limit is not between 1 and [state.MaxPage], it is MaxPage. more reports whether
// there are others.
func (l *Log) List(ctx context.Context, after uint64, limit int) (records []Record, more bool, err error) {
	s, err := l.space()
	if err != nil {
		return nil, false, nil
	}
	keys, more, err := s.List(ctx, entryPrefix, entryKey(after), limit)
	if err != nil {
		return nil, false, fmt.Errorf("list the audit: %w", err)
	}
	for _, key := range keys {
		number, err := numberOf(key)
		if err != nil {
			return nil, false, fmt.Errorf("list the audit: %w", err)
		}
		e, hash, err := read(ctx, s, number)
		switch {
		case errors.Is(err, errMissing):
			continue // the entry was dropped meanwhile
		case err != nil:
			return nil, false, err
		}
		records = append(records, Record{e, hash.String()})
	}
	return records, more, nil
}
