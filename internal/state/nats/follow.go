package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
)

// How the stream is followed.
const (
	// leastPause and mostPause bound the pause between two attempts.
	leastPause, mostPause = 50 * time.Millisecond, 5 * time.Second
	// markersFor is how long the stream keeps the marker of a deleted key. A copy that is older than resumeFor is read anew, since it may have
	// missed markers.
	markersFor, resumeFor = time.Hour, 30 * time.Minute
	// lookEvery is how often the leader is asked for its last sequence. lag is how long the copy may take to reach it.
	lookEvery, lag = time.Second, time.Second
	// cutAfter is how long the leader may be silent before writes are refused.
	cutAfter = 3 * time.Second
	// mostEnds is how many times the leader is asked again for the end of the stream, while everything is read from the start.
	mostEnds = 8
	// moveEvery is the least time between two searches for another server, while the present one seems to have lost the others.
	moveEvery = 5 * time.Second
	// doubtFor is how long nothing is written after a write was not answered: a leader that has lost the others goes on answering for a while.
	doubtFor = 3 * time.Second
)

// health says whether the copy is up to date.
type health struct {
	mu      sync.Mutex
	fresh   time.Time // when the copy was last known to be complete
	cut     *Cut      // nil: the copy is complete
	told    bool      // a line about the cut was logged
	doubt   error     // why the last write was not answered; nil if it was
	doubted time.Time // when that was
	failed  time.Time // when a failed write was last logged
	moved   time.Time // when another server was last looked for
	broken  error
	created time.Time          // of the stream
	follows context.CancelFunc // stops following the stream, or is nil
}

// A Cut is a time during which the state is read as it was last known, and can't be written.
type Cut struct {
	Since time.Time
	Why   error
}

// CutOff returns since when the store is cut off from the others, and why, or nil.
func (s *Store) CutOff() *Cut {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.cut
}

// Broken returns why nothing can be read or written any more until the program is started again, or nil.
func (s *Store) Broken() error {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.broken
}

// lose gives the state up for good.
func (s *Store) lose(err error) {
	s.health.mu.Lock()
	first := s.health.broken == nil
	if first {
		s.health.broken = fmt.Errorf("%w: %w", state.ErrUnavailable, err)
	}
	s.health.mu.Unlock()
	if first {
		s.options.Log.Error("this process has lost the state, so tools get errors", slog.Any("error", err))
		s.arrived()
	}
}

// arrived lets Open return.
func (s *Store) arrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// again makes the goroutine follow start over with a new consumer.
func (s *Store) again() {
	s.health.mu.Lock()
	if s.health.follows != nil {
		s.health.follows()
	}
	s.health.mu.Unlock()
	wake(s.kicked)
}

// follow is the goroutine that keeps the copy up to date until the store is closed.
func (s *Store) follow() {
	pause := leastPause
	for s.ctx.Err() == nil && s.Broken() == nil {
		ctx, cancel := context.WithCancel(s.ctx)
		s.health.mu.Lock()
		s.health.follows = cancel
		s.health.mu.Unlock()
		whole, err := s.session(ctx)
		cancel()
		if s.ctx.Err() != nil {
			return
		}
		if whole {
			pause = leastPause
		}
		s.blame(err)
		s.options.Log.Debug("the state is being followed again", slog.Any("because", err))
		select {
		case <-s.ctx.Done():
		case <-s.kicked:
			// Many processes should not come back at the same moment.
			time.Sleep(rand.N(leastPause / 2))
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, mostPause)
	}
}

// blame records why the copy is not complete yet. If it has never been complete, a missing permission is final.
func (s *Store) blame(err error) {
	select {
	case <-s.ready:
		return
	default:
	}
	if isFinal(err) {
		s.lose(err)
		return
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if s.health.cut != nil {
		s.health.cut = &Cut{s.health.cut.Since, err}
	}
}

// session follows the stream from the copy's position, and reports whether the copy became complete. It asks the leader how far the stream goes: the
// consumer's own node may lag behind, and then has nothing pending although there is more.
//
// When everything is read anew, it is read from the node that led when the end was asked for. No other node will do: a node that was away for a
// long time still has keys that were deleted meanwhile. It may reach the end without ever receiving the markers of these keys, since markers
// expire.
func (s *Store) session(ctx context.Context) (whole bool, err error) {
	began := time.Now()
	defer func() { err = s.rights.why(began, err) }()
	stream, info, end, err := s.end(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	resumes := s.copy.position > 0 && !s.copy.anew && s.freshWithin(resumeFor)
	if !resumes {
		s.copy.round++
		s.copy.anew, s.copy.position = true, 0
	}
	position := s.copy.position
	s.mu.Unlock()
	leader := ""
	if !resumes && info.Cluster != nil {
		leader = info.Cluster.Leader
	}
	p, err := enter(ctx, s, stream, leader, jetstream.ConsumerConfig{
		FilterSubject: s.bucket.heads(), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: position + 1, InactiveThreshold: 30 * time.Second,
	}, jetstream.PullMaxMessages(1000))
	if err != nil {
		return false, fmt.Errorf("follow the stream: %w", err)
	}
	defer p.leave()
	ends := 0 // how many more times the end is asked for
	if !resumes {
		ends = mostEnds
	}
	for {
		// If a key is written while everything is read anew, its message is gone from its old place and comes again later. So the end is asked for again
		// until nothing was written in between. After mostEnds times, only a key that was written at each of these moments could be missing.
		if !whole && position >= end && ends > 0 {
			if _, info, end, err = s.end(ctx); err != nil {
				return false, err
			}
			ends--
		}
		if !whole && position >= end {
			p.wait()
			s.complete(!resumes, info.State.LastSeq, began)
			whole = true
			if leader != "" { // follows any node from now on, since not all processes should follow the leader
				s.again()
			}
		}
		m, meta, err := p.read()
		if err != nil {
			return whole, err
		}
		s.apply(m, meta)
		position = meta.Sequence.Stream
		if err := s.Broken(); err != nil {
			return whole, err
		}
	}
}

// end asks the leader for the state of the stream, and for the sequence of its last head.
func (s *Store) end(ctx context.Context) (stream jetstream.Stream, info *jetstream.StreamInfo, end uint64, err error) {
	if stream, info, err = s.info(ctx); err == nil {
		end, err = s.lastHead(ctx, info.State.LastSeq)
	}
	return stream, info, end, err
}

// lastHead returns the sequence of the last head that the stream had when it was at the given sequence. It may return that of a later head, and
// returns 0 if there was no head. It asks the leader.
func (s *Store) lastHead(ctx context.Context, sequence uint64) (uint64, error) {
	if sequence == 0 {
		return 0, nil
	}
	last, err := s.ask(ctx, "", sequence) // a batch ends with a head
	if _, _, foreign := s.bucket.parse(last.Subject); errors.Is(err, errGone) || err == nil && foreign != nil {
		last, err = s.ask(ctx, s.bucket.heads(), 0)
	}
	if errors.Is(err, errGone) {
		return 0, nil
	}
	return last.Sequence, err
}

// info asks the leader for the state of the stream. If the stream was created again since the store was opened, the store is lost: sequences, which
// are versions here, may be used a second time.
func (s *Store) info(ctx context.Context) (jetstream.Stream, *jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	asked, came := time.Now(), s.room.came.Load()
	stream, err := s.js.Stream(ctx, s.bucket.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil, fmt.Errorf("the bucket %s no longer exists: restore it, or restart toolsrv", s.bucket)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask NATS for the bucket %s: %w", s.bucket, s.rights.why(asked, err))
	}
	info := stream.CachedInfo()
	if err := led(info); err != nil {
		return nil, nil, fmt.Errorf("ask NATS for the bucket %s: %w", s.bucket, err)
	}
	if err := s.loses(&info.Config); err != nil { // somebody has just changed its settings, and messages may be lost unnoticed
		s.mu.Lock()
		first := !s.copy.anew
		s.copy.anew = true
		s.mu.Unlock()
		if first {
			s.again()
		}
		return nil, nil, err
	}
	s.clock.set(asked, time.Now(), info.TimeStamp, s.options.Log)
	s.room.note(info, came, s.options.Log)
	s.mu.RLock()
	position := s.copy.position
	s.mu.RUnlock()
	s.health.mu.Lock()
	before := s.health.created
	if before.IsZero() {
		s.health.created = info.Created
	}
	s.health.mu.Unlock()
	if !before.IsZero() && !before.Equal(info.Created) {
		s.lose(fmt.Errorf("the bucket %s was created again, and is at %d, where it was at %d before: if that is intended, restart toolsrv", s.bucket, info.State.LastSeq, position))
		return nil, nil, s.Broken()
	}
	return stream, info, nil
}

// led returns an error if a stream has no leader. Without one, a node answers with what it has itself, which may be long out of date.
func led(info *jetstream.StreamInfo) error {
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return errors.New("no node leads it: a majority of the nodes is away, or they are electing a leader")
	}
	return nil
}

// freshWithin reports whether the copy was complete within the last d.
func (s *Store) freshWithin(d time.Duration) bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return time.Since(s.health.fresh) < d
}

// apply applies a message to the copy.
func (s *Store) apply(m jetstream.Msg, meta *jetstream.MsgMetadata) {
	space, key, err := s.bucket.parse(m.Subject())
	var head entry
	var value []byte
	deletes := m.Headers().Get(operation) != ""
	if err == nil && key != "" && !deletes {
		head, value, err = parseHead(m.Data(), state.MaxValue)
		head.key, head.version = key, meta.Sequence.Stream
	}
	if err == nil && len(value) > 0 {
		if space == formsSpace && key == keyWritten {
			s.forms.learn(value)
		}
		if known, has := s.options.Forms[space]; has && value[0] > known {
			s.lose(fmt.Errorf("the entry %.60q of %q is %w: its form is %d, but this version reads %d. Use that version, or a newer one", key, space, state.ErrNewer, value[0], known))
		}
	}
	s.mu.Lock()
	changed := false
	switch {
	case err != nil && key == "":
	case key == "": // even if it is not ours, the next write must expect this sequence
		c := s.copy.content(space)
		c.turn = max(c.turn, meta.Sequence.Stream)
	case err != nil, deletes: // if err is set, somebody else has overwritten the old entry
		changed = s.copy.delete(space, key, meta.Sequence.Stream)
	default:
		changed = s.copy.put(space, head, value)
	}
	s.copy.taken++
	s.room.take(max(len(m.Data()), head.size))
	s.copy.advance(meta.Sequence.Stream)
	full := s.copy.entries > maxEntries+maxEntries/3 || s.copy.names > maxNames+maxNames/3
	s.mu.Unlock()
	switch {
	case err != nil && key == "":
		s.foreign.Add(err, slog.String("subject", m.Subject()))
	case err != nil:
		s.damaged.Add(err, slog.String("subject", m.Subject()))
	}
	if changed {
		s.hub.Changed(space, key)
	}
	if full {
		s.lose(fmt.Errorf("the bucket %s has more than %d keys, or keys of more than %d bytes together", s.bucket, maxEntries, maxNames))
	}
}

// complete records that the copy has everything up to a sequence, which the stream had reached at a moment.
func (s *Store) complete(anew bool, sequence uint64, moment time.Time) {
	var gone [][2]string
	s.mu.Lock()
	if anew {
		s.copy.anew = false
		gone = s.copy.missing()
		for _, at := range gone {
			s.copy.drop(at[0], at[1])
		}
	}
	s.copy.advance(sequence)
	first := false
	select {
	case <-s.forms.whole:
	default:
		first, s.forms.empty = true, s.copy.entries == 0
	}
	s.mu.Unlock()
	for _, at := range gone {
		s.hub.Changed(at[0], at[1])
	}
	s.health.mu.Lock()
	s.health.fresh = moment
	if !s.health.told { // this is the first time
		s.health.cut = nil
	}
	s.health.mu.Unlock()
	if first { // from now on, the forms can be written
		close(s.forms.whole)
	}
	wake(s.looking)
}

// await waits until the copy has reached a sequence.
func (s *Store) await(ctx context.Context, sequence uint64) error {
	s.mu.Lock()
	if s.copy.position >= sequence {
		s.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	s.copy.waiters = append(s.copy.waiters, waiter{sequence, done})
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, w := range s.copy.waiters {
			if w.done == done {
				s.copy.waiters = append(s.copy.waiters[:i], s.copy.waiters[i+1:]...)
				break
			}
		}
		return fmt.Errorf("%w: the stream is at %d, which did not arrive here in time", state.ErrUnavailable, sequence)
	}
}

// look is the goroutine that asks the leader regularly for its last sequence: a stream without messages may be cut off.
func (s *Store) look() {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		case <-s.looking:
		}
		s.judge(s.compare())
		s.move()
	}
}

// move has the client look for another server if the present one has lost the others. The client does not notice that itself, since the present
// server still answers pings.
func (s *Store) move() {
	cut := s.CutOff()
	if cut == nil || !s.conn.IsConnected() {
		return
	}
	s.health.mu.Lock()
	now := time.Now()
	moves := now.Sub(cut.Since) > cutAfter && now.Sub(s.health.moved) > moveEvery
	if moves {
		s.health.moved = now.Add(rand.N(moveEvery)) // so that not all processes move at once
	}
	s.health.mu.Unlock()
	if moves && len(s.conn.Servers()) > 1 {
		_ = s.conn.ForceReconnect() // it fails if the connection has just been closed
	}
}

// compare returns why the copy is not up to date, or nil.
func (s *Store) compare() error {
	if !s.conn.IsConnected() {
		return errors.New("there is no connection to NATS")
	}
	began := time.Now()
	s.mu.RLock()
	position := s.copy.position
	s.mu.RUnlock()
	_, info, err := s.info(s.ctx)
	if err != nil {
		return err
	}
	if last := info.State.LastSeq; last < position { // the leader has lost the other nodes, or somebody reported a false sequence
		return fmt.Errorf("the bucket %s is at %d, and was at %d before: if that lasts, restart toolsrv", s.bucket, last, position)
	}
	ctx, cancel := context.WithTimeout(s.ctx, lag)
	defer cancel()
	before := s.taken()
	if err := s.await(ctx, info.State.LastSeq); err != nil {
		if s.taken() == before { // no messages come at all, so it is not merely slow
			s.again()
		}
		return s.rights.why(began.Add(-2*mostPause), err) // follow may have paused meanwhile
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.fresh = began
	if time.Since(s.health.doubted) > doubtFor {
		s.health.doubt = nil
	}
	return s.health.doubt
}

// taken returns how many messages have been applied.
func (s *Store) taken() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.copy.taken
}

// judge records whether the state is cut off, and logs it.
func (s *Store) judge(why error) {
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	switch {
	case why == nil && h.cut != nil:
		if h.told {
			s.options.Log.Info("the state is complete again", slog.Duration("after", time.Since(h.cut.Since).Round(time.Millisecond)))
		}
		h.cut, h.told = nil, false
	case why == nil:
	case h.cut == nil && s.conn.IsConnected() && time.Since(h.fresh) < cutAfter && h.doubt == nil:
		// A single late answer does not mean that it is cut off.
	default:
		since := h.fresh
		if h.cut != nil {
			since = h.cut.Since
		}
		h.cut = &Cut{since, why}
		if !h.told {
			h.told = true
			s.options.Log.Error("the state is cut off: it is read as it was last known, and can't be changed until NATS is back", slog.Any("error", why))
		}
	}
}
