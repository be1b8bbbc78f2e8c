package catalog

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/internal/state"
)

// How processes with one state agree on which of two files has a path. One record in the state says which files wait for which. Whoever sees a file wait adds
// that, unless the record says the opposite: then it has the files change places. Whoever sees a wait end takes it out, once: another process that
// still sees the file wait puts it back. A record is changed only as it was read, so that of two processes that decide otherwise at the same time, one is first.

const (
	// PathsSpace is the name of the space of a state that has the record, and PathsForm the newest form of it.
	PathsSpace = "paths"
	PathsForm  = precedence.Form
	// pathsKey is its key.
	pathsKey = "files"
	// readWithin is how long the start waits for the record.
	readWithin = 4 * time.Second
	// againAfter is how long it takes until the record is followed or written again, when that was not possible.
	againAfter = time.Second
)

// A sharing is the record that processes share. The reconciler's goroutine owns it.
type sharing struct {
	r     *reconciler
	space state.Space // nil: there is none

	known   bool                  // it was read once
	record  precedence.Precedence // as it is in the state, with files as told calls them
	version uint64                // of the record; 0: there is none
	newer   bool                  // it can't be read, and has to stay as it is
	ended   precedence.Precedence // what this process has seen end, and the record still says
	writing bool                  // a write is under way
	retry   time.Time             // when the record is written again; zero: it was, or a change is awaited
	failed  string                // what the log was told last
}

// told returns what processes call a file.
func (s *sharing) told(key string) string {
	for _, f := range s.r.feeds {
		if name, ok := strings.CutPrefix(key, f.prefix); ok {
			return f.shared() + elsewhere + name
		}
	}
	return key
}

// shared returns what processes that share it call a source.
func (f *feed) shared() string { return cmp.Or(f.Name, f.id) }

// toldAll returns what processes call the files of p.
func (s *sharing) toldAll(p precedence.Precedence) precedence.Precedence {
	all := precedence.Precedence{}
	for key, holders := range p {
		for _, holder := range holders {
			all[s.told(key)] = append(all[s.told(key)], s.told(holder))
		}
	}
	return all.Sorted()
}

// own returns, by keys, what p says of the sources of this process.
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

// read reads the record for the start. Without it the start goes by what this process has noted.
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

// A read record is one with its version, or why it can't be read.
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

// take takes up a record.
func (s *sharing) take(read readRecord) {
	r := s.r
	if read.version != 0 && read.version < s.version { // read before this process has written one
		return
	}
	s.newer = errors.Is(read.err, state.ErrNewer)
	s.tell("the record of which file has each path that servers share can't be read", read.err)
	if s.newer {
		return
	}
	s.known, s.record, s.version = true, read.Precedence, read.version
	s.ended = s.ended.Without(s.ended.Without(s.record))
	r.index.noted = s.own(s.record.Without(s.ended)).With(r.noted, 0)
	if r.listed && r.awaited == 0 {
		r.writeRecords()
		return
	}
	r.noted = r.index.noted
	r.order()
}

// end notes that files do not wait any more as they did, and now do otherwise.
func (s *sharing) end(ended, now precedence.Precedence) {
	if s.space == nil || len(ended) == 0 && len(s.ended) == 0 {
		return
	}
	ended = s.toldAll(ended)
	s.ended = s.ended.With(ended.Without(ended.Without(s.record)), 0).Without(s.toldAll(now))
}

// write has the record say what this process knows, unless it does already, or a write is under way.
func (s *sharing) write() {
	s.retry = time.Time{}
	if s.space == nil || !s.known || s.newer || s.writing {
		return
	}
	noted := s.toldAll(s.r.index.noted)
	if len(s.ended) == 0 && len(noted.Without(s.record)) == 0 {
		return
	}
	value, err := s.record.Without(s.ended).With(noted, precedence.MostShared).Encode()
	next := readRecord{err: err}
	if err == nil { // as others will read it
		next.Precedence, next.err = precedence.Decode(value)
	}
	if next.err != nil {
		s.tell("which file has each path can't be told to other servers", next.err)
		return
	}
	if next.Equal(s.record) {
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
		s.hand(func() { s.wrote(next) })
	})
}

// wrote takes up how a write has ended.
func (s *sharing) wrote(next readRecord) {
	s.writing = false
	switch {
	case next.err != nil:
		if s.retry = time.Now().Add(againAfter); !errors.Is(next.err, state.ErrConflict) && !errors.Is(next.err, state.ErrUnavailable) { // of which the state tells
			s.tell("which file has each path can't be told to other servers", next.err)
		}
	case next.version == 0 || next.version > s.version:
		s.take(next)
	default: // a later one has come meanwhile
		s.write()
	}
}

// tell tells the log what is wrong, once.
func (s *sharing) tell(what string, err error) {
	if err == nil {
		s.failed = ""
		return
	}
	if text := what + err.Error(); text != s.failed {
		s.failed = text
		s.r.logger.Warn(what, "error", err)
	}
}

// hand has f called by the reconciler's goroutine, until that ends.
func (s *sharing) hand(f func()) {
	select {
	case s.r.do <- f:
	case <-s.r.ctx.Done():
	}
}

// follow takes up what other processes change, until the reconciler ends.
func (s *sharing) follow() {
	for s.r.ctx.Err() == nil {
		none := true
		for e, err := range s.space.Watch(s.r.ctx, pathsKey) {
			if err != nil {
				break
			}
			if e.Synced && none {
				s.hand(func() { s.take(readRecord{}) })
			}
			if e.Key == pathsKey {
				none = false
				read := decodeRecord(e.Entry)
				s.hand(func() { s.take(read) })
			}
		}
		select {
		case <-s.r.ctx.Done():
		case <-time.After(againAfter):
		}
	}
}
