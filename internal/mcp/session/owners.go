package session

import (
	"container/list"
	"iter"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// An owner is who may use a session: the principal that began it, with the same credential. The rotation of a token does not end the session.
type owner struct{ name, origin, realm, credential string }

func ownerOf(p *wasmtools.Principal) owner {
	return owner{p.String(), p.Origin(), p.Realm(), p.Credential()}
}

// owners holds sessions by owner, and owners by their number of sessions. Every method except all takes the same time, however many sessions there
// are.
type owners struct {
	of      map[owner]*owned
	byCount []*list.List // lists of *owned: byCount[n] has the owners of n+1 sessions, the last active one first. The last list is not empty
}

// owned are the sessions of an owner.
type owned struct {
	sessions list.List     // its *session values, the last used first
	place    *list.Element // its place in a list of byCount
}

// add adds a session that was just used.
func (o *owners) add(x *session) {
	own := o.of[x.owner]
	if own == nil {
		own = &owned{}
		o.of[x.owner] = own
	}
	x.place = own.sessions.PushFront(x)
	o.count(own, own.sessions.Len()-1)
}

// remove removes a session.
func (o *owners) remove(x *session) {
	own := o.of[x.owner]
	own.sessions.Remove(x.place)
	o.count(own, own.sessions.Len()+1)
	if own.sessions.Len() == 0 {
		delete(o.of, x.owner)
	}
}

// touch notes that a session was just used.
func (o *owners) touch(x *session) {
	own := o.of[x.owner]
	own.sessions.MoveToFront(x.place)
	o.byCount[own.sessions.Len()-1].MoveToFront(own.place)
}

// count moves an owner to the list for its present number of sessions. before is the number of sessions that it had until now.
func (o *owners) count(own *owned, before int) {
	if before > 0 {
		o.byCount[before-1].Remove(own.place)
	}
	now := own.sessions.Len()
	if now > len(o.byCount) {
		o.byCount = append(o.byCount, list.New())
	}
	if now > 0 {
		own.place = o.byCount[now-1].PushFront(own)
	}
	for n := len(o.byCount); n > 0 && o.byCount[n-1].Len() == 0; n-- {
		o.byCount[n-1] = nil
		o.byCount = o.byCount[:n-1]
	}
}

// all yields the sessions of each owner, those used last first. The loop may remove owners.
func (o *owners) all() iter.Seq2[owner, *list.List] {
	return func(yield func(owner, *list.List) bool) {
		for who, own := range o.of {
			if !yield(who, &own.sessions) {
				return
			}
		}
	}
}

// mostLooks bounds how many sessions victim looks at.
const mostLooks = 1000

// victim returns the session to put aside for another one. It belongs to an owner with the most sessions, so a client that starts sessions without end
// loses its own. It is the one that was used longest ago without a running call, preferably one without a stream. victim returns nil if it finds none
// among the thousand sessions of such owners that were used longest ago.
func (o *owners) victim() (found *session) {
	if len(o.byCount) == 0 {
		return nil
	}
	looks := 0
	for most := o.byCount[len(o.byCount)-1].Back(); most != nil && found == nil; most = most.Prev() {
		for e := most.Value.(*owned).sessions.Back(); e != nil; e = e.Prev() {
			if looks++; looks > mostLooks {
				return found
			}
			switch x := e.Value.(*session); {
			case x.busy > 0:
			case x.stream == nil:
				return x
			case found == nil:
				found = x
			}
		}
	}
	return found
}
