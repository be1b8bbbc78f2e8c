package session

import (
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// defaultMax is Options.Max if that is zero.
	defaultMax = 10_000
	// defaultIdle is Options.Idle if that is zero.
	defaultIdle = 30 * time.Minute
)

// Options are the settings of Sessions. The zero value is usable.
type Options struct {
	// Max is how many sessions are held. To make room for another one, an idle session of a principal with the most sessions is put aside. If none
	// of those is idle, the new session is refused. Zero means 10,000.
	Max int
	// Idle is how long a session is held without a request or an open stream. Zero means 30 minutes.
	Idle time.Duration
	// KeepAlive is how often an idle stream sends a comment, for proxies, and to notice that its client is gone. Zero means 25 seconds.
	KeepAlive time.Duration
	// Keys sign the ids. If nil, the Sessions make their own keys, so that no other process accepts the ids.
	Keys *signing.Keys
	// Peers are the other processes that have the same keys. If nil, there are none.
	Peers state.Peers
}

// Sessions are the sessions of clients over HTTP. They are safe for concurrent use.
//
// The id of a session contains all that is needed to resume it, in any process with the same keys. A process only holds the running requests and what
// the stream has sent. A session without running requests can be put aside.
type Sessions struct {
	set         *toolset.Set
	protocol    *protocol.Server
	max         int
	idle        time.Duration
	keepAlive   time.Duration
	unsubscribe func()
	unhear      func()
	stop        chan struct{}
	running     sync.WaitGroup
	keys        *signing.Keys
	peers       state.Peers // nil if there are none

	mu      sync.Mutex
	closed  bool
	byID    map[string]*session
	owners  owners
	ended   ended
	cancels bucket
}

// A session is a session of one client over HTTP.
type session struct {
	*protocol.Conversation
	id        string
	namespace string
	owner     owner
	place     *list.Element // its place in the list of the owner's sessions

	// Guarded by Sessions.mu.
	used   time.Time // when a request last began or ended
	busy   int       // requests that are not answered yet
	stream *stream   // the open stream, or nil
	gone   bool      // the session is no longer in the table
	// principal made the last request: its scopes may differ from those at the beginning.
	principal *wasmtools.Principal
	edition   toolset.Edition // edition of the list that the client knows; zero before initialize is answered
	cancels   bucket          // bounds how often other processes are asked to cancel calls

	changed chan struct{} // has room for one value: the list has changed, and the client was not notified
}

// shown returns a name for the session in traces. It is not the id: without tokens, anybody who knows the id can use the session.
func (s *session) shown() string {
	digest := sha256.Sum256([]byte(s.id))
	return hex.EncodeToString(digest[:8])
}

// New returns the Sessions for the clients of a set. The caller must Close them.
func New(set *toolset.Set, o Options) *Sessions {
	s := &Sessions{
		set:       set,
		max:       cmp.Or(max(o.Max, 0), defaultMax),
		idle:      cmp.Or(max(o.Idle, 0), defaultIdle),
		keepAlive: cmp.Or(max(o.KeepAlive, 0), rpc.KeepAlive),
		stop:      make(chan struct{}),
		byID:      map[string]*session{},
		owners:    owners{of: map[owner]*owned{}},
		keys:      o.Keys,
		peers:     o.Peers,
		unhear:    func() {},
	}
	if s.keys == nil {
		s.keys = signing.New()
	}
	if s.peers != nil {
		ended, cancelled := s.peers.Hear(topic, s.hear), s.peers.Hear(topicCancelled, s.hearCancelled)
		s.unhear = func() { ended(); cancelled() }
	}
	s.protocol = protocol.New(set, protocol.Options{})
	s.unsubscribe = set.Subscribe(s.tell)
	s.running.Go(s.expire)
	return s
}

// Number returns how many sessions there are.
func (s *Sessions) Number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// State returns how many sessions there are, how many there may be, and how many each caller has, by name. Callers with the same name are counted
// together.
func (s *Sessions) State() (open, most int, by map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by = make(map[string]int64, len(s.owners.of))
	for o, own := range s.owners.all() {
		by[o.name] += int64(own.Len())
	}
	return len(s.byID), s.max, by
}

// Close ends all sessions with their streams and calls, and waits for them to end. It returns nil and can be called twice.
func (s *Sessions) Close() error {
	s.unsubscribe()
	s.unhear()
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	var open []*session
	for _, x := range s.byID {
		open = append(open, x)
		s.remove(x)
	}
	s.mu.Unlock()
	for _, x := range open {
		x.Close()
	}
	for _, x := range open {
		x.Wait()
	}
	s.running.Wait()
	return nil
}

// These are errors of begin and take.
var (
	errMissing = errors.New("there is no such session")
	errFull    = errors.New("too many sessions are open")
)

// begin starts a session with a version. As after take, the caller must give the session back.
func (s *Sessions) begin(namespace, version string, p *wasmtools.Principal) (*session, error) {
	own := ownerOf(p)
	x := s.newSession(newID(s.keys, version, namespace, own), namespace, own, p)
	x.Conversation = protocol.NewConversation()
	return s.add(x)
}

// resume restores a session that is not held: it began in another process, or was put aside. It is not known which list its client has, so its stream
// starts with a notification of a change.
func (s *Sessions) resume(id, namespace string, p *wasmtools.Principal) (*session, error) {
	own := ownerOf(p)
	version, ok := checkID(s.keys, id, namespace, own)
	if !ok {
		return nil, errMissing
	}
	x := s.newSession(id, namespace, own, p)
	x.Conversation = protocol.Resume(version)
	x.changed <- struct{}{}
	return s.add(x)
}

func (s *Sessions) newSession(id, namespace string, own owner, p *wasmtools.Principal) *session {
	return &session{id: id, namespace: namespace, owner: own, busy: 1, principal: p, changed: make(chan struct{}, 1)}
}

// add puts a session into the table, and takes another one out if there is no room. It returns the session that is then in the table, since another
// request may have added the same session just before.
func (s *Sessions) add(x *session) (*session, error) {
	held, victim, err := s.put(x)
	if victim != nil {
		victim.Close()
	}
	if held != x {
		x.Close()
	}
	if err == nil {
		s.look(held) // from now on it is in the table, so no change is missed
	}
	return held, err
}

func (s *Sessions) put(x *session) (held, victim *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch other := s.byID[x.id]; {
	case s.closed:
		return nil, nil, errFull
	case s.ended.has(x.id):
		return nil, nil, errMissing
	case other != nil: // it has the same owner, as the signature of the id proves
		s.use(other, x.principal)
		return other, nil, nil
	}
	if len(s.byID) >= s.max {
		if victim = s.owners.victim(); victim == nil {
			return nil, nil, errFull
		}
		s.remove(victim)
	}
	s.byID[x.id] = x
	x.used = time.Now()
	s.owners.add(x)
	return x, victim, nil
}

// take returns the session with an id and marks it as used, if it belongs to the namespace and the principal. The caller must give it back.
func (s *Sessions) take(id, namespace string, p *wasmtools.Principal) (*session, error) {
	s.mu.Lock()
	x := s.byID[id]
	if x == nil {
		s.mu.Unlock()
		return s.resume(id, namespace, p)
	}
	defer s.mu.Unlock()
	if x.namespace != namespace || x.owner != ownerOf(p) {
		return nil, errMissing
	}
	s.use(x, p)
	return x, nil
}

// use begins to use a session that is held.
func (s *Sessions) use(x *session, p *wasmtools.Principal) {
	x.busy++
	x.principal = p
	s.touch(x)
}

// give ends the use of a session.
func (s *Sessions) give(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.busy--
	s.touch(x)
}

func (s *Sessions) touch(x *session) {
	if x.used = time.Now(); !x.gone {
		s.owners.touch(x)
	}
}

// drop removes a session whose initialize failed.
func (s *Sessions) drop(x *session) {
	s.mu.Lock()
	s.remove(x)
	s.mu.Unlock()
	x.Close()
}

// end ends a session, in all processes.
func (s *Sessions) end(x *session) {
	s.hear([]byte(x.id))
	if s.peers != nil {
		s.peers.Tell(topic, []byte(x.id))
	}
}

// topic is the topic for the ids of ended sessions.
const topic = "sessions-ended"

// hear ends a session when another server reports that it has ended.
func (s *Sessions) hear(message []byte) {
	if len(message) != idLen {
		return
	}
	id := string(message)
	s.mu.Lock()
	x := s.byID[id]
	if x != nil {
		s.remove(x)
	}
	s.ended.add(id)
	s.mu.Unlock()
	if x != nil {
		x.Close()
	}
}

// A call runs in the process that received its request, but its client may cancel it in any process. The process that receives the cancellation
// checks whose session it is, and tells the others.
const (
	// topicCancelled is the topic for cancelled calls: the id of the session, and that of the request as the client wrote it.
	topicCancelled = "calls-cancelled"
	// maxRequestID bounds the id of a request, in bytes of JSON.
	maxRequestID = 256
	// cancelsOfOne and cancelsOfAll are how many cancellations a process passes on in a second, for one session and for all.
	cancelsOfOne, cancelsOfAll = 16, 256
)

// cancelElsewhere asks other processes to cancel a call of a session, which the caller has taken.
func (s *Sessions) cancelElsewhere(x *session, request []byte) {
	if s.peers == nil || len(request) > maxRequestID {
		return
	}
	now := time.Now()
	s.mu.Lock()
	tells := x.cancels.take(cancelsOfOne, now) && s.cancels.take(cancelsOfAll, now)
	s.mu.Unlock()
	if tells {
		s.peers.Tell(topicCancelled, append([]byte(x.id), request...))
	}
}

// hearCancelled cancels a call whose cancellation another process has received.
func (s *Sessions) hearCancelled(message []byte) {
	if len(message) <= idLen || len(message) > idLen+maxRequestID {
		return
	}
	s.mu.Lock()
	x := s.byID[string(message[:idLen])]
	s.mu.Unlock()
	if x != nil {
		x.Cancel(message[idLen:])
	}
}

// remove takes a session out of the table.
func (s *Sessions) remove(x *session) {
	if x.gone {
		return
	}
	x.gone = true
	delete(s.byID, x.id)
	s.owners.remove(x)
}

// End ends the sessions of principals that are no longer admitted, with their streams and calls. Each process does so by itself: a process that has
// lost its state admits nobody, but the others continue.
func (s *Sessions) End(ended func(*wasmtools.Principal) bool) {
	over := map[*wasmtools.Principal]bool{}
	s.mu.Lock()
	for _, x := range s.byID {
		over[x.principal] = false
	}
	s.mu.Unlock()
	for p := range over { // without the lock, since requests wait for it
		over[p] = ended(p)
	}
	s.mu.Lock()
	var gone []*session
	for _, x := range s.byID {
		is, known := over[x.principal]
		if !known { // it began since then, or another request has used it
			is = ended(x.principal)
			over[x.principal] = is
		}
		if is {
			gone = append(gone, x)
		}
	}
	for _, x := range gone {
		s.remove(x)
		s.ended.add(x.id)
	}
	s.mu.Unlock()
	for _, x := range gone {
		x.Close()
	}
}

// expire puts aside the sessions that have been idle for too long.
func (s *Sessions) expire() {
	ticker := time.NewTicker(max(s.idle/8, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-ticker.C:
			for _, x := range s.old(now.Add(-s.idle)) {
				x.Close()
			}
		}
	}
}

// old removes and returns the sessions that were last used before a time.
func (s *Sessions) old(since time.Time) (old []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, own := range s.owners.all() {
		for e := own.Back(); e != nil; {
			x := e.Value.(*session)
			if !x.used.Before(since) {
				break // the sessions before it were used later
			}
			if e = e.Prev(); x.busy == 0 && x.stream == nil {
				s.remove(x)
				old = append(old, x)
			}
		}
	}
	return old
}

// tell makes the streams notify the clients whose list has changed. It gets each list once, and without the lock: a changed list takes time
// to make, and requests wait for the lock.
func (s *Sessions) tell() {
	type sight struct {
		namespace string
		principal *wasmtools.Principal
	}
	editions := map[sight]toolset.Edition{}
	s.mu.Lock()
	for _, x := range s.byID {
		editions[sight{x.namespace, x.principal}] = toolset.Edition{}
	}
	s.mu.Unlock()
	for seen := range editions {
		editions[seen] = s.set.Edition(seen.namespace, seen.principal)
	}
	var late []*session // new sessions, and those whose principal has changed since then
	s.mu.Lock()
	for _, x := range s.byID {
		if edition, ok := editions[sight{x.namespace, x.principal}]; ok {
			x.note(edition)
		} else {
			late = append(late, x)
		}
	}
	s.mu.Unlock()
	for _, x := range late {
		s.look(x)
	}
}

// look notifies a session's client if its list has changed.
func (s *Sessions) look(x *session) {
	s.mu.Lock()
	p := x.principal
	s.mu.Unlock()
	edition := s.set.Edition(x.namespace, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	x.note(edition)
}

// see stores the principal that has a session's stream open. If its scopes have changed and it now sees another list, the client is notified.
func (s *Sessions) see(x *session, p *wasmtools.Principal) {
	edition := s.set.Edition(x.namespace, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	x.principal = p
	x.note(edition)
}

// note makes the session's stream notify the client of a list that it does not know. The last notification is about the newest list.
func (x *session) note(edition toolset.Edition) {
	before := x.edition
	if edition.At < before.At {
		return
	}
	if x.edition = edition; before.At == 0 || edition.List == before.List {
		return
	}
	select {
	case x.changed <- struct{}{}:
	default:
	}
}
