package nats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"strconv"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
)

// Bounds of a batch. The server accepts 1000 messages in one, and 50 batches of a stream at a time from all clients together.
const (
	mostWrites   = 200
	mostBytes    = 4 << 20
	mostMessages = 900
	mostSwept    = 256
	mostBatches  = 8
)

// The headers of messages.
const (
	operation   = "KV-Operation"
	ttlHeader   = "Nats-TTL"
	batchID     = "Nats-Batch-Id"
	batchNumber = "Nats-Batch-Sequence"
	batchCommit = "Nats-Batch-Commit"
)

// A write is one change of a space.
type write struct {
	key     string
	value   []byte
	deletes bool
	sweeps  bool                   // deletes expired entries; key is not used
	only    func(c *content) error // returns an error if the copy does not allow the write; nil allows it
	expect  int64
	expires int64
	quota   state.Usage
	done    chan outcome
}

type outcome struct {
	version uint64
	deleted bool
	err     error
}

// writers holds a writer for each space that is being written.
type writers struct {
	mu      sync.Mutex
	of      map[string]*writer
	running sync.WaitGroup
	closed  bool
}

// A writer makes the changes of one space, one batch after another. While it waits for the servers, the next batch gathers.
type writer struct {
	space   string
	pending []*write
}

// wait returns when all writes have been made or have failed. New ones are refused.
func (w *writers) wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.running.Wait()
}

// submit passes a change to the space's writer, and waits for it.
func (s *Store) submit(ctx context.Context, space string, w *write) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	if err := s.writable(); err != nil {
		return outcome{}, err
	}
	return s.perform(ctx, space, w)
}

// perform is submit, but also works before the copy is complete.
func (s *Store) perform(ctx context.Context, space string, w *write) (outcome, error) {
	began := time.Now()
	w.done = make(chan outcome, 1)
	if err := s.enqueue(space, w); err != nil {
		return outcome{}, err
	}
	select {
	case o := <-w.done:
		s.written.Add(time.Since(began))
		return o, o.err
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	}
}

// writable returns why nothing can be written, or nil.
func (s *Store) writable() error {
	if err := s.usable(); err != nil {
		return err
	}
	if cut := s.CutOff(); cut != nil {
		return fmt.Errorf("%w: it has been cut off since %s, and can't be changed until NATS is back: %w", state.ErrUnavailable, cut.Since.UTC().Format(time.RFC3339), cut.Why)
	}
	return nil
}

func (s *Store) enqueue(space string, one *write) error {
	w := &s.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("%w: it is closed", state.ErrUnavailable)
	}
	of := w.of[space]
	if of == nil {
		of = &writer{space: space}
		w.of[space] = of
		w.running.Go(func() { s.run(of) })
	}
	of.pending = append(of.pending, one)
	return nil
}

// run makes the changes of a space until none is left.
func (s *Store) run(of *writer) {
	for {
		writes := s.writers.take(of)
		if writes == nil {
			return
		}
		s.places <- struct{}{}
		s.write(of.space, writes)
		<-s.places
	}
}

// take takes the writes of the next batch. No key is in a batch twice, so that each write gets a version of its own. It returns nil when
// no write is left.
func (w *writers) take(of *writer) (writes []*write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(of.pending) == 0 {
		delete(w.of, of.space)
		return nil
	}
	bytes, keys := 0, map[string]bool{}
	var left []*write
	for i, one := range of.pending {
		if len(writes) == mostWrites || len(writes) > 0 && bytes+len(one.value) > mostBytes {
			left = append(left, of.pending[i:]...)
			break
		}
		if keys[one.key] {
			left = append(left, one)
			continue
		}
		keys[one.key] = true
		bytes += len(one.value)
		writes = append(writes, one)
	}
	of.pending = left
	return writes
}

// write makes changes, in one batch if possible, and tells the callers that wait.
func (s *Store) write(space string, writes []*write) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.ctx, s.options.Limit)
	defer cancel()
	sure := false    // the copy has every change that the space had when the writes arrived
	careful := false // the last batch was refused without a reason
	for try := 0; len(writes) > 0; try++ {
		p := s.plan(space, writes)
		if p.doubtful && !sure {
			if err := s.barrier(ctx, space); err != nil {
				fail(writes, s.unanswered(ctx, began, err))
				return
			}
			sure = true
			continue
		}
		sequence, err := s.publish(ctx, space, p, careful)
		switch {
		case err == nil:
			if err := s.await(ctx, sequence); err != nil {
				fail(writes, fmt.Errorf("%w: the change was made, but has not arrived here yet", s.rights.why(began.Add(-2*mostPause), err)))
				return
			}
			writes = p.tell(sequence)
			continue
		case errors.Is(err, errConflict):
			sure = true
			if late := s.barrier(ctx, space); late != nil {
				err = late
			}
		case errors.Is(err, errAgain):
			careful = true
		}
		again := errors.Is(err, errConflict) || errors.Is(err, errAgain)
		if !again || !pause(ctx, min(time.Duration(try+1)*2*time.Millisecond, 50*time.Millisecond)) {
			fail(writes, s.unanswered(ctx, began, err))
			return
		}
	}
}

func fail(writes []*write, err error) {
	for _, w := range writes {
		w.done <- outcome{err: err}
	}
}

// pause waits for a random time, so that writers of the same space do not collide again. It returns false if ctx has ended.
func pause(ctx context.Context, most time.Duration) bool {
	select {
	case <-time.After(mrand.N(most)):
		return true
	case <-ctx.Done():
		return false
	}
}

// unanswered returns the error of a write that failed. If NATS did not answer, the store is cut off for now.
func (s *Store) unanswered(ctx context.Context, began time.Time, err error) error {
	silent := ctx.Err() != nil && s.ctx.Err() == nil
	if denied := s.rights.since(began); silent && denied != nil {
		err = denied
	} else if silent {
		err = fmt.Errorf("NATS did not confirm the change within %v; it may have been made: %w", s.options.Limit, err)
	}
	h := &s.health
	h.mu.Lock()
	now := time.Now()
	tells := now.Sub(h.failed) > tellEvery
	if tells {
		h.failed = now
	}
	if silent {
		h.doubt, h.doubted = err, now
	}
	h.mu.Unlock()
	s.lost.Add(1)
	if tells {
		s.options.Log.Error("a change of the state was not made", slog.Any("error", err))
	}
	wake(s.looking)
	return fmt.Errorf("%w: %w", state.ErrUnavailable, err)
}

// barrier returns once the copy has every change of a space that the leader has.
func (s *Store) barrier(ctx context.Context, space string) error {
	last, err := s.ask(ctx, s.bucket.turn(space), 0)
	if errors.Is(err, errGone) { // the space was never written, or somebody has removed its message by hand
		s.mu.Lock()
		defer s.mu.Unlock()
		if c := s.copy.spaces[space]; c != nil {
			c.turn = 0
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.await(ctx, last.Sequence); err != nil {
		return err
	}
	s.mu.Lock()
	c := s.copy.spaces[space]
	missed := !s.copy.anew && s.copy.position >= last.Sequence && (c == nil || c.turn < last.Sequence)
	s.copy.anew = s.copy.anew || missed
	s.mu.Unlock()
	if missed {
		s.options.Log.Warn("the copy of the state lacks a change that NATS has, so everything is read again", slog.String("space", space))
		s.again()
	}
	return nil
}

// A plan is the content of a batch.
type plan struct {
	messages []*client.Msg
	turn     uint64 // the last write of the space that the copy has
	writes   []planned
	doubtful bool // a write is refused, maybe only because the copy is out of date
}

// A planned is a write of a plan. It has the write's outcome and the index of its head among the messages, unless the write must wait for another
// batch.
type planned struct {
	*write
	outcome
	head  int
	later bool
}

// plan decides the outcome of each write, by what the copy has now.
func (s *Store) plan(space string, writes []*write) (p plan) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.copy.spaces[space]
	if c == nil {
		c = &content{}
	}
	now, usage, adds := s.now(), c.usage, int64(0)
	p.turn = c.turn
	expired := c.due.expired(now, mostSwept+1)
	done, gone := map[string]bool{}, map[string]bool{} // keys that the plan writes, and expired keys that it deletes
	sweep := func(besides string) {
		for i, e := range expired {
			if i == mostSwept || done[e.key] || gone[e.key] || e.key == besides {
				continue
			}
			gone[e.key] = true
			p.delete(s.bucket, space, e)
			usage.Entries--
			usage.Bytes -= e.counts()
		}
	}
	for _, w := range writes {
		one := planned{write: w, head: -1}
		old := c.entries[w.key]
		if gone[w.key] {
			old = nil
		}
		there := old != nil && !old.expired(now)
		var version uint64
		if there {
			version = old.version
		}
		switch {
		case w.sweeps:
			sweep("")
		case len(p.messages) > mostMessages-2*maxParts-2*mostSwept:
			one.later = true
		default:
			if one.err = state.Conflict(version, w.expect); one.err == nil && w.only != nil {
				one.err = w.only(c)
			}
			if one.err != nil {
				break
			}
			if w.deletes {
				if one.deleted = there; there {
					p.delete(s.bucket, space, old)
					usage.Entries--
					usage.Bytes -= old.counts()
					done[w.key] = true
				}
				break
			}
			after, err := fits(w, old, there, usage)
			if err != nil {
				sweep(w.key)
				after, err = fits(w, old, there, usage)
			}
			switch {
			case err != nil && len(expired) > mostSwept:
				one.later = true // there are more expired entries to delete
			case err != nil:
				one.err = err
			case w.quota.Bytes > 0 && s.room.scarce(adds+int64(len(w.value))): // only tools' spaces have a quota
				one.err = errScarce
			case old == nil && s.copy.entries >= maxEntries:
				one.err = fmt.Errorf("%w: there are %d keys, and no more are allowed", state.ErrUnavailable, s.copy.entries)
			default:
				one.head = p.set(s, space, w, old)
				adds += int64(len(w.value)) + overhead
				usage = after
				done[w.key] = true
			}
		}
		p.doubtful = p.doubtful || one.err != nil || w.deletes && !one.deleted && !one.later
		p.writes = append(p.writes, one)
	}
	return p
}

// fits returns the usage of the space after a write, and an error if that exceeds the quota. An expired entry no longer counts.
func fits(w *write, old *entry, there bool, before state.Usage) (after state.Usage, err error) {
	after = before
	if old != nil {
		after.Entries--
		after.Bytes -= old.counts()
		if !there {
			before = after
		}
	}
	after.Entries++
	after.Bytes += state.SizeOf(w.key, w.value)
	return after, w.quota.Exceeds(before, after)
}

// delete adds the messages that delete an entry.
func (p *plan) delete(b bucket, space string, e *entry) {
	p.mark(b.head(space, e.key))
	for i := range e.parts {
		p.mark(b.part(space, e.key, i+1))
	}
}

// mark adds the marker that deletes a message. The marker itself expires later.
func (p *plan) mark(subject string) {
	m := client.NewMsg(subject)
	m.Header.Set(operation, "DEL")
	m.Header.Set(ttlHeader, markersFor.String())
	p.messages = append(p.messages, m)
}

// set adds the messages that set a key, and returns the index of its head.
func (p *plan) set(s *Store, space string, w *write, old *entry) int {
	parts, size, rest := 0, len(w.value), w.value
	if size > inlineBytes {
		most := int(min(s.conn.MaxPayload(), maxPart)) - besides
		for ; len(rest) > 0; parts++ {
			m := client.NewMsg(s.bucket.part(space, w.key, parts+1))
			m.Data = rest[:min(most, len(rest))]
			rest = rest[len(m.Data):]
			p.messages = append(p.messages, m)
		}
	}
	m := client.NewMsg(s.bucket.head(space, w.key))
	m.Data = newHead(w.expires, size, parts, rest)
	p.messages = append(p.messages, m)
	head := len(p.messages) - 1
	if old != nil {
		for i := parts; i < old.parts; i++ {
			p.mark(s.bucket.part(space, w.key, i+1))
		}
	}
	return head
}

// tell tells the callers the outcomes of their writes, and returns the writes that need another batch. last is the sequence of the
// batch's last message.
func (p *plan) tell(last uint64) (later []*write) {
	for _, w := range p.writes {
		if w.later {
			later = append(later, w.write)
			continue
		}
		if w.head >= 0 {
			w.version = last - uint64(len(p.messages)-w.head)
		}
		w.done <- w.outcome
	}
	return later
}

// Errors of publish.
var (
	errConflict = errors.New("somebody else is writing to the same space")
	errAgain    = errors.New("there is no leader, or it has changed")
)

// Codes of the server's errors.
const (
	wrongSequence         = 10071
	wrongSequenceInFlight = 10164
	incompleteBatch       = 10176
	noLeader              = 10008
	tooManyBatches        = 10210
	sameInFlight          = 10158
)

// publish sends the batch of a plan to the leader, and returns the sequence of its last message, which is the space's turn. If careful, it waits
// for an answer after each message: the answer at the end does not say why a single message was refused, such as because the account is full.
func (s *Store) publish(ctx context.Context, space string, p plan, careful bool) (uint64, error) {
	if len(p.messages) == 0 {
		return 0, nil
	}
	turn := client.NewMsg(s.bucket.turn(space))
	turn.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(p.turn, 10))
	turn.Header.Set(batchCommit, "1")
	id := rand.Text()
	messages := append(p.messages, turn)
	for i, m := range messages {
		m.Header.Set(batchID, id)
		m.Header.Set(batchNumber, strconv.Itoa(i+1))
	}
	for _, m := range p.messages {
		if careful {
			if _, err := s.send(ctx, m); err != nil {
				return 0, err
			}
		} else if err := s.conn.PublishMsg(m); err != nil {
			return 0, fmt.Errorf("send to NATS: %w", err)
		}
	}
	sequence, err := s.send(ctx, turn)
	if err == nil && sequence == 0 {
		err = errors.New("send to NATS: its answer has no sequence")
	}
	if err != nil {
		return 0, err
	}
	s.health.mu.Lock()
	s.health.doubt = nil
	s.health.mu.Unlock()
	return sequence, nil
}

// send sends a message and returns the sequence that the leader answers with. Within a batch that is 0 until its last message.
func (s *Store) send(ctx context.Context, m *client.Msg) (uint64, error) {
	answer, err := s.conn.RequestMsgWithContext(ctx, m)
	if errors.Is(err, client.ErrNoResponders) { // there is no leader, so nobody has accepted it: a new one is being elected
		return 0, errAgain
	}
	if err != nil {
		return 0, fmt.Errorf("send to NATS: %w", err)
	}
	return confirmation(answer)
}

// confirmation returns the sequence that an answer of the leader has: 0 before the end of a batch.
func confirmation(answer *client.Msg) (uint64, error) {
	if len(answer.Data) == 0 {
		return 0, nil
	}
	var ack struct {
		Sequence uint64              `json:"seq"`
		Error    *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("send to NATS: its answer %.60q: %w", answer.Data, err)
	}
	if ack.Error == nil {
		return ack.Sequence, nil
	}
	switch ack.Error.ErrorCode {
	case wrongSequence, wrongSequenceInFlight:
		return 0, errConflict
	case incompleteBatch, tooManyBatches, noLeader, sameInFlight:
		return 0, errAgain
	}
	return 0, fmt.Errorf("NATS refuses the change: %s", ack.Error.Description)
}

// sweepEvery is how often expired entries are deleted. Each process waits a random part of sweepGrace longer, so that usually one of them does it
// for all.
const sweepEvery, sweepGrace = time.Second, 2 * time.Second

// sweep is the goroutine that deletes expired entries. That is not urgent, since they are no longer visible.
func (s *Store) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if s.CutOff() != nil || s.Broken() != nil {
			continue
		}
		now := s.now() - mrand.N(sweepGrace).Milliseconds()
		var spaces []string
		s.mu.RLock()
		for space, c := range s.copy.timed {
			if len(c.due) > 0 && c.due[0].expired(now) && len(spaces) < mostSwept {
				spaces = append(spaces, space)
			}
		}
		s.mu.RUnlock()
		for _, space := range spaces {
			if ctx := s.ctx; ctx.Err() == nil {
				_, _ = s.submit(ctx, space, &write{sweeps: true}) // an error is logged, and the next round tries again
			}
		}
	}
}
