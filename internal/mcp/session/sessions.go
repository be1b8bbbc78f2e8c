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
	// Max is how many sessions are held. One more has an idle one put aside of the principal that has the most, or is refused if none of those
	// is idle. Zero means 10,000.
	Max int
	// Idle is how long a session is held without a request or an open stream. Zero means 30 minutes.
	Idle time.Duration
	// KeepAlive is how often a stream that has nothing to say says so, for proxies, and to notice that its client is gone.
	// Zero means 25 seconds.
	KeepAlive time.Duration
	// Keys sign the ids. If nil, keys of its own, so that no other process knows the ids.
	Keys *signing.Keys
	// Peers are the other processes that have the same keys. If nil, there are none.
	Peers state.Peers
}

// Sessions are the sessions of clients over HTTP. They are safe for concurrent use.
//
// A session is in its id: whoever has the keys takes it up. What is held of it is what goes on here, and what its stream has told. It can be put
// aside when nothing does.
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
	peers       state.Peers // nil: there are none

	mu      sync.Mutex
	closed  bool
	byID    map[string]*session
	owners  map[owner]*list.List // of *session, those used last first
	ended   ended
	cancels bucket
}

// An owner may use a session: the principal that began it, with the credential that it had then. A token's rotation does not end it.
type owner struct{ name, origin, realm, credential string }

func ownerOf(p *wasmtools.Principal) owner {
	return owner{p.String(), p.Origin(), p.Realm(), p.Credential()}
}

// A session is one client's, over HTTP.
type session struct {
	*protocol.Conversation
	id        string
	namespace string
	owner     owner
	place     *list.Element // in the list of its owner

	// Guarded by Sessions.mu.
	used   time.Time // when a request began or ended
	busy   int       // requests that are not answered yet
	stream *stream   // nil: none is open
	gone   bool      // it is in the table no more
	// principal made the last request: its scopes may differ from those at the beginning.
	principal *wasmtools.Principal
	edition   toolset.Edition // of the list that the client knows of; zero means it has not begun
	cancels   bucket          // of calls that may run in other processes

	changed chan struct{} // has room for one: the list has changed, and the client was not told
}

// shown returns what tells the session from others. It is not the id, which would give the session to anybody where no token is needed.
func (s *session) shown() string {
	digest := sha256.Sum256([]byte(s.id))
	return hex.EncodeToString(digest[:8])
}

// New returns the sessions that clients of a set have. Call Close in the end.
func New(set *toolset.Set, o Options) *Sessions {
	s := &Sessions{
		set:       set,
		max:       cmp.Or(max(o.Max, 0), defaultMax),
		idle:      cmp.Or(max(o.Idle, 0), defaultIdle),
		keepAlive: cmp.Or(max(o.KeepAlive, 0), rpc.KeepAlive),
		stop:      make(chan struct{}),
		byID:      map[string]*session{},
		owners:    map[owner]*list.List{},
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

// State returns how many sessions there are, how many there may be, and how many each caller has, by name. Callers of one name count together.
func (s *Sessions) State() (open, most int, by map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by = make(map[string]int64, len(s.owners))
	for o, own := range s.owners {
		by[o.name] += int64(own.Len())
	}
	return len(s.byID), s.max, by
}

// Close ends all sessions, with their streams and calls, and waits for those. It returns nil and can be called twice.
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

// Errors of begin and take.
var (
	errMissing = errors.New("there is no such session")
	errFull    = errors.New("too many sessions are open")
)

// begin makes a session of a version, taken.
func (s *Sessions) begin(namespace, version string, p *wasmtools.Principal) (*session, error) {
	own := ownerOf(p)
	x := s.newSession(newID(s.keys, version, namespace, own), namespace, own, p)
	x.Conversation = protocol.NewConversation()
	return s.add(x)
}

// resume takes up a session that is not held: it has begun in another process, or was put aside. Nobody knows which list its client has, so its
// stream begins with that it has changed.
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

// add puts a session into the table, and takes out one that makes room for it. It returns the one that is there, which another request may just
// have put there.
func (s *Sessions) add(x *session) (*session, error) {
	held, victim, err := s.put(x)
	if victim != nil {
		victim.Close()
	}
	if held != x {
		x.Close()
	}
	if err == nil {
		s.look(held) // now that it is in the table, no change is missed
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
	case other != nil: // it is the same owner's, as the id says
		s.use(other, x.principal)
		return other, nil, nil
	}
	if len(s.byID) >= s.max {
		if victim = s.victim(); victim == nil {
			return nil, nil, errFull
		}
		s.remove(victim)
	}
	s.byID[x.id] = x
	own := s.owners[x.owner]
	if own == nil {
		own = list.New()
		s.owners[x.owner] = own
	}
	x.used, x.place = time.Now(), own.PushFront(x)
	return x, victim, nil
}

// victim returns the session that makes room for another. It belongs to the principal with the most sessions, so a client that begins
// sessions without end has its own put aside. It is the one that has been idle for longest, preferably one without a stream. It is nil if all
// of those have calls.
func (s *Sessions) victim() (found *session) {
	var most *list.List
	for _, own := range s.owners {
		if most == nil || own.Len() > most.Len() {
			most = own
		}
	}
	for e := most.Back(); e != nil; e = e.Prev() {
		switch x := e.Value.(*session); {
		case x.busy > 0:
		case x.stream == nil:
			return x
		case found == nil:
			found = x
		}
	}
	return found
}

// take returns the session of an id and begins to use it, if it belongs to the namespace and the principal. A caller that has taken
// it gives it back.
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
		s.owners[x.owner].MoveToFront(x.place)
	}
}

// drop puts a session aside that did not begin.
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

// topic is what sessions that have ended are told under.
const topic = "sessions-ended"

// hear ends a session when another server tells that it has ended.
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

// A call runs where its request came in, and its client may cancel it in any process. That one has checked whose session it is, and tells the others.
const (
	// topicCancelled is what calls that are cancelled are told under: the ids of the session and of the request, as the client wrote it.
	topicCancelled = "calls-cancelled"
	// maxRequestID is how many bytes of JSON the id of a request may have.
	maxRequestID = 256
	// cancelsOfOne and cancelsOfAll are how often in a second others are told for one session, and for all of a process.
	cancelsOfOne, cancelsOfAll = 16, 256
)

// cancelElsewhere has other processes cancel a call of a session, which the caller has taken.
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

// hearCancelled cancels a call of which it was told that its client does not want it any more.
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
	own := s.owners[x.owner]
	if own.Remove(x.place); own.Len() == 0 {
		delete(s.owners, x.owner)
	}
}

// End ends the sessions of principals that are no longer let in, with their streams and calls. Each process does so by itself: one that has lost
// its state lets nobody in, and others go on.
func (s *Sessions) End(ended func(*wasmtools.Principal) bool) {
	over := map[*wasmtools.Principal]bool{}
	s.mu.Lock()
	for _, x := range s.byID {
		over[x.principal] = false
	}
	s.mu.Unlock()
	for p := range over { // without the lock, for which requests wait
		over[p] = ended(p)
	}
	s.mu.Lock()
	var gone []*session
	for _, x := range s.byID {
		is, known := over[x.principal]
		if !known { // it has begun since then, or another request has used it
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

// expire puts the sessions aside that nobody has used for long.
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
	for _, own := range s.owners {
		for e := own.Back(); e != nil; {
			x := e.Value.(*session)
			if !x.used.Before(since) {
				break // those before it were used later
			}
			if e = e.Prev(); x.busy == 0 && x.stream == nil {
				s.remove(x)
				old = append(old, x)
			}
		}
	}
	return old
}

// tell makes the streams tell of a change those clients whose list is another one now. It asks for each list once, and without the lock, for
// which requests wait: lists that have changed are made anew.
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
	var late []*session // their requests have brought another principal since then
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

// look has a session's client told if it sees another list now.
func (s *Sessions) look(x *session) {
	s.mu.Lock()
	p := x.principal
	s.mu.Unlock()
	edition := s.set.Edition(x.namespace, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	x.note(edition)
}

// see notes who has a session's stream open. Their scopes may have changed: clients that now see another list are told.
func (s *Sessions) see(x *session, p *wasmtools.Principal) {
	edition := s.set.Edition(x.namespace, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	x.principal = p
	x.note(edition)
}

// note makes the session's stream tell the client of a list that it does not know. What it is told last is the latest.
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
