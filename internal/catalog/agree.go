package catalog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// In this file, processes that share a state agree on which of two files gets a path. One record in the state says which files wait for which. A
// process that sees a file wait adds that to the record, unless the record says the opposite: then the process swaps the two files. A process that
// sees a wait end removes it from the record, once: another process that still sees the file wait adds it again. A record is written only if it is
// still as it was read, so of two processes that decide differently at the same time, one is first.

const (
	// PathsSpace names the space of the state that holds the record, and PathsForm is the record's newest form.
	PathsSpace = "paths"
	PathsForm  = precedence.Form
	// pathsKey is the record's key.
	pathsKey = "files"
	// readWithin is how long the start waits for the record.
	readWithin = 4 * time.Second
	// If somebody else has written the record meanwhile, it is written again after a random pause below leastPause, which doubles each time up to
	// mostPause: all processes whose writes were too late find that out at the same moment. In TestAgreeMany this reduces the conflicts of 24 servers
	// from 170 to 120, and the last one finishes no later.
	leastPause, mostPause = 50 * time.Millisecond, 250 * time.Millisecond
)

// A sharing is the record that processes share. The reconciler's goroutine owns it.
type sharing struct {
	r     *reconciler
	space state.Space // nil if the processes share no state

	known   bool                  // the record has been read at least once
	record  precedence.Precedence // the record as it is in the state, with file names as told returns them
	version uint64                // the record's version; 0 means that there is no record
	newer   bool                  // a newer toolsrv wrote it, so it can't be read and must not be changed
	ended   precedence.Precedence // waits that this process has seen end, and that the record still has
	writing bool                  // a write is under way
	lost    int                   // how many writes in a row have come too late
	retry   time.Time             // when the record may be written again; zero means at once

	unread, untold, full *trouble.Trouble
}

func newSharing(r *reconciler, space state.Space) *sharing {
	begins := func(what, over string) *trouble.Trouble { return trouble.New(r.logger, slog.LevelWarn, what, over) }
	return &sharing{r: r, space: space,
		unread: begins("the servers' shared record of which file has which path can't be read", "the servers' shared record of which file has which path can be read again"),
		untold: begins("other servers can't be told which file has which path", "other servers can be told again which file has which path"),
		full:   begins("the servers' shared record of which file has which path is full: between two files that are not in it, each server chooses by itself", "the servers' shared record of which file has which path has room again"),
	}
}

// told returns the name by which all processes know a file.
func (s *sharing) told(key string) string {
	for _, f := range s.r.feeds {
		if name, ok := strings.CutPrefix(key, f.prefix); ok {
			return f.shared() + elsewhere + name
		}
	}
	return key
}

// shared returns the name by which all processes know a source.
func (f *feed) shared() string { return cmp.Or(f.Name, f.id) }

// toldAll returns p with the names by which all processes know the files.
func (s *sharing) toldAll(p precedence.Precedence) precedence.Precedence {
	all := precedence.Precedence{}
	for key, holders := range p {
		for _, holder := range holders {
			all[s.told(key)] = append(all[s.told(key)], s.told(holder))
		}
	}
	return all.Sorted()
}

// own returns the part of p that is about the sources of this process, with the keys of their files.
func (s *sharing) own(p precedence.Precedence) precedence.Precedence {
	prefixes := map[string]string{}
	for _, f := range s.r.feeds {
		prefixes[f.shared()] = f.prefix
	}
	key := func(told string) (key string, ok bool) {
		at := strings.LastIndex(told, elsewhere)
		if at < 0 {
			return "", false
		}
		prefix, ok := prefixes[told[:at]]
		return prefix + told[at+len(elsewhere):], ok
	}
	all := precedence.Precedence{}
	for file, holders := range p {
		waiting, ok := key(file)
		if !ok {
			continue
		}
		for _, holder := range holders {
			if holder, ok := key(holder); ok {
				all[waiting] = append(all[waiting], holder)
			}
		}
	}
	return all.Sorted()
}

// read reads the record for the start. Without a record, the start uses what this process has noted.
func (s *sharing) read() {
	if s.space == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.r.ctx, readWithin)
	defer cancel()
	if e, _, err := s.space.Get(ctx, pathsKey, state.MaxValue); err == nil {
		s.take(decodeRecord(e))
	}
}

// A read record is a record with its version, or the reason why it can't be read.
type readRecord struct {
	precedence.Precedence
	version uint64
	err     error
}

func decodeRecord(e state.Entry) readRecord {
	r := readRecord{version: e.Version}
	if e.Version != 0 {
		r.Precedence, r.err = precedence.Decode(e.Value)
	}
	return r
}

// take applies a record.
func (s *sharing) take(read readRecord) {
	r := s.r
	if read.version != 0 && read.version < s.version { // it was read before this process wrote a later version
		return
	}
	s.newer = errors.Is(read.err, state.ErrNewer)
	s.unread.Set(read.err)
	if s.newer {
		return
	}
	s.known, s.record, s.version = true, read.Precedence, read.version
	s.ended = s.ended.Without(s.ended.Without(s.record))
	r.index.noted = s.own(s.record.Without(s.ended)).With(r.noted)
	if r.listed && r.awaited == 0 {
		r.writeRecords()
		return
	}
	r.noted = r.index.noted
	r.order()
}

// end notes which waits have ended: those in before that are not in now.
func (s *sharing) end(ended, now precedence.Precedence) {
	if s.space == nil || len(ended) == 0 && len(s.ended) == 0 {
		return
	}
	ended = s.toldAll(ended)
	s.ended = s.ended.With(ended.Without(ended.Without(s.record))).Without(s.toldAll(now))
}

// write brings the record up to date with what this process knows, unless it is up to date already, a write is under way, or a write has
// just failed.
func (s *sharing) write() {
	if time.Now().Before(s.retry) {
		return
	}
	s.retry = time.Time{}
	if s.space == nil || !s.known || s.newer || s.writing {
		return
	}
	noted := s.toldAll(s.r.index.noted)
	if len(s.ended) == 0 && len(noted.Without(s.record)) == 0 {
		s.full.Set(nil)
		s.untold.Set(nil)
		return
	}
	all, err := s.record.Without(s.ended).Within(noted, precedence.MostShared)
	s.full.Set(err)
	value, err := all.Encode()
	next := readRecord{err: err}
	if err == nil { // decoded as other servers will decode it
		next.Precedence, next.err = precedence.Decode(value)
	}
	if next.err != nil {
		s.untold.Set(next.err)
		return
	}
	if next.Equal(s.record) {
		s.untold.Set(nil)
		return
	}
	expect := int64(s.version)
	s.writing = true
	s.r.following.Go(func() {
		if len(next.Precedence) > 0 {
			next.version, next.err = s.space.Set(s.r.ctx, pathsKey, value, expect, state.SetOptions{})
		} else {
			_, next.err = s.space.Delete(s.r.ctx, pathsKey, expect)
		}
		s.r.hand(func() { s.wrote(next) })
	})
}

// wrote handles the result of a write.
func (s *sharing) wrote(next readRecord) {
	s.writing = false
	switch {
	case errors.Is(next.err, state.ErrConflict):
		s.retry = time.Now().Add(rand.N(min(leastPause<<min(s.lost, 10), mostPause)))
		s.lost++
	case next.err != nil:
		s.retry = time.Now().Add(state.FollowAgain/2 + rand.N(state.FollowAgain))
		if !errors.Is(next.err, state.ErrUnavailable) { // the state reports that itself
			s.untold.Set(next.err)
		}
	case next.version == 0 || next.version > s.version:
		s.lost = 0
		s.untold.Set(nil)
		s.take(next)
	default: // a later version has been applied meanwhile
		s.lost = 0
		s.untold.Set(nil)
		s.write()
	}
}

// follow applies what other processes change, until the reconciler ends.
func (s *sharing) follow() {
	take := func(read readRecord) error {
		s.r.hand(func() { s.take(read) })
		return nil
	}
	state.Follow(s.r.ctx, s.space, pathsKey, state.Follower{
		Take: func(e state.Event) error {
			if e.Key != pathsKey {
				return nil
			}
			return take(decodeRecord(e.Entry))
		},
		Whole: func(keys map[string]bool) error {
			if keys[pathsKey] {
				return nil
			}
			return take(readRecord{})
		},
	})
}
