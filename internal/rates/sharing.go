package rates

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// How processes share the rates of principals: in every round, each process tells the others which calls it has let through, and counts the others'
// calls like its own. So each process has the same bucket for a principal, one round late. If the processes together let too many calls through in
// that round, the bucket is overdrawn, and then all of them let fewer through. So in the long run the calls of all processes together meet the
// rate.
//
// In a round, each process may use an equal share of the bucket, and everything that is refilled in that time. So not every process lets a whole
// burst through.
const (
	// roundTime is how long a round is.
	roundTime = 100 * time.Millisecond
	// A process with nothing to tell sends a message every idleRounds rounds, so that the others know that it is there.
	idleRounds = 5
	// silence is how long a process may send nothing before it counts as gone.
	silence = 1500 * time.Millisecond
	// lateness is how long a process may let calls through beyond the burst before the others' calls stop it.
	lateness = time.Second
	// mostActive is how many principals of a shard are sent in a round. Others wait for the next round.
	mostActive = 64
	// mostPeers is how many other processes can be known.
	mostPeers = 1000
	// topic is the topic of the messages.
	topic = "rates"
	// toldForm is the first byte of a message, and toldHead the size of its head: that byte and the sender.
	toldForm = 1
	toldHead = 1 + 8
)

// A sharing says how a table shares its rates with others. The zero sharing is for a table that is not shared.
type sharing struct {
	round atomic.Uint32 // the number of the current round; 0 if the table is not shared
	peers atomic.Int64  // how many processes there are, including this one
}

// A part is what an entry has in addition if its table is shared.
type part struct {
	round  uint32        // the round that reach belongs to
	listed bool          // whether the entry is in active
	reach  time.Duration // how far ahead of now the entry's since may be
	untold time.Duration // how far since was moved by calls of this process that the others have not been told about
}

// An active is an entry with something to tell the others.
type active struct {
	who    *wasmtools.Principal
	caller uint64
	at     int
}

// take counts a call of the entry at i that the entry's own rate lets through, or returns how long to wait. The shard is locked.
func (g *sharing) take(s *shard, i int, who *wasmtools.Principal, m measure, round uint32, now time.Duration) (after time.Duration) {
	if s.parts == nil {
		s.parts, s.active = make([]part, len(s.entries)), make([]active, 0, mostActive)
	}
	e, p := &s.entries[i], &s.parts[i]
	if p.round != round {
		ahead := e.since - now
		p.round, p.reach = round, ahead+max(m.interval, (m.window-ahead)/time.Duration(g.peers.Load()))
	}
	if over := e.since + m.interval - p.reach - now; over > 0 {
		return min(over, roundTime)
	}
	p.untold += m.interval
	if !p.listed && len(s.active) < mostActive {
		p.listed = true
		s.active = append(s.active, active{who, e.caller, i})
	}
	return 0
}

// count counts calls of a caller that other processes have let through.
func (t *table) count(caller uint64, moved, window, now time.Duration) {
	s, at := t.lock(caller)
	defer s.mu.Unlock()
	i := s.find(at, caller)
	if i < 0 {
		// No entry that still counts calls is forgotten because of what other processes say.
		if i = s.room(at, now); i < 0 || owes(&s.entries[i], now) > 0 {
			return
		}
		s.renew(i, entry{caller: caller, since: now, window: window})
	}
	e := &s.entries[i]
	peers := time.Duration(t.sharing.peers.Load())
	most := time.Duration(longest)
	if each := e.window + lateness; each < longest/peers {
		most = each * peers
	}
	before := max(e.since, now)
	// Messages don't say when in the last round each call was made, so all are counted as made at its beginning.
	e.since = max(e.since, min(max(e.since, now-roundTime)+moved, now+most))
	if s.parts != nil && e.since > now {
		s.parts[i].reach += e.since - before // calls elsewhere don't reduce this process's share
	}
}

// A sharer shares a Limiter.
type sharer struct {
	limiter *Limiter
	peers   state.Peers
	self    uint64
	moves   []move // the moves of a round
	message []byte

	mu    sync.Mutex
	heard map[uint64]time.Time // the other processes, and when they were heard last
}

// A move is how far calls of a principal have moved the time at which its bucket is full again.
type move struct {
	who        *wasmtools.Principal
	by, window time.Duration
}

// Share shares the rates of principals with other processes until ctx ends. Rates of addresses, and limits of calls at the same time, are not shared.
func (l *Limiter) Share(ctx context.Context, peers state.Peers) {
	var id [8]byte
	_, _ = rand.Read(id[:]) // which never fails
	s := &sharer{limiter: l, peers: peers, self: binary.BigEndian.Uint64(id[:]), heard: map[uint64]time.Time{}}
	g := &l.principals.sharing
	g.peers.Store(1)
	defer peers.Hear(topic, s.hear)()
	defer g.round.Store(0)
	tick := time.NewTicker(roundTime)
	defer tick.Stop()
	for idle := idleRounds; ; idle++ {
		g.round.Store(max(1, g.round.Load()+1))
		if s.tell(idle >= idleRounds) {
			idle = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell sends the others the calls let through since it last did, and reports whether it has sent anything. If always is true, it sends a message even
// if there were none.
func (s *sharer) tell(always bool) (told bool) {
	s.forget()
	for i := range s.limiter.principals.shards {
		s.moves = s.limiter.principals.shards[i].collect(s.moves)
	}
	s.begin()
	for _, m := range s.moves {
		before := len(s.message)
		s.message = m.append(s.message)
		if len(s.message) > state.MaxTold {
			s.peers.Tell(topic, s.message[:before])
			s.begin()
			s.message = m.append(s.message)
		}
	}
	told = always || len(s.moves) > 0
	clear(s.moves)
	s.moves = s.moves[:0]
	if told {
		s.peers.Tell(topic, s.message)
	}
	return told
}

// collect adds the moves that the others have not been told.
func (s *shard) collect(to []move) []move {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.active {
		e, p := &s.entries[a.at], &s.parts[a.at]
		if e.caller != a.caller { // the entry was forgotten, and belongs to another caller now
			continue
		}
		if p.listed = false; p.untold > 0 {
			to = append(to, move{a.who, p.untold, e.window})
			p.untold = 0
		}
	}
	clear(s.active)
	s.active = s.active[:0]
	return to
}

// begin begins a message.
func (s *sharer) begin() {
	s.message = binary.BigEndian.AppendUint64(append(s.message[:0], toldForm), s.self)
}

// append appends the move to a message.
func (m move) append(to []byte) []byte {
	for _, text := range [...]string{m.who.String(), m.who.Origin(), m.who.Realm()} {
		to = binary.AppendUvarint(to, uint64(len(text)))
		to = append(to, text...)
	}
	return binary.AppendUvarint(binary.AppendUvarint(to, uint64(m.by)), uint64(m.window))
}

// hear handles a message of another process. The message may be wrong, but can do no more than keep a caller waiting.
func (s *sharer) hear(message []byte) {
	if len(message) < toldHead || message[0] != toldForm {
		return
	}
	if from := binary.BigEndian.Uint64(message[1:]); from == s.self || !s.know(from) {
		return
	}
	now := s.limiter.now()
	r := reader{message[toldHead:]}
	for len(r.rest) > 0 {
		name, origin, realm, by, window := r.text(), r.text(), r.text(), r.duration(), r.duration()
		if r.rest == nil {
			return
		}
		s.limiter.principals.count(s.limiter.numberOf(name, origin, realm), by, window, now)
	}
}

// know records that a process was heard, and reports whether it is known.
func (s *sharer) know(from uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.heard[from]; !known && len(s.heard) >= mostPeers {
		return false
	}
	s.heard[from] = time.Now()
	s.limiter.principals.sharing.peers.Store(int64(len(s.heard)) + 1)
	return true
}

// forget forgets processes that have been silent for too long.
func (s *sharer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from, at := range s.heard {
		if time.Since(at) > silence {
			delete(s.heard, from)
		}
	}
	s.limiter.principals.sharing.peers.Store(int64(len(s.heard)) + 1)
}

// A reader reads a message. rest is nil after an error, and empty but not nil at the end.
type reader struct{ rest []byte }

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.rest = nil
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

func (r *reader) duration() time.Duration {
	return time.Duration(min(r.number(), uint64(longest)))
}
