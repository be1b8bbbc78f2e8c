package auth

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A BearerTokenAuth is a set of tokens, one of which a caller must show. Make one with [NewBearerTokenAuth].
//
// A change applies to the next request. Requests never wait for a change: they read an immutable set through an atomic pointer. All
// methods are safe for concurrent use.
//
// Tokens are not kept, only their SHA-256 digests, keyed with a secret that is new for each BearerTokenAuth. The time of a lookup tells a
// caller nothing. Without the key nobody knows which digests are compared, so nobody can measure how much of a guess was right, which token
// matched, or how many there are.
//
// Each token stands for a principal that may call every tool. The first one is named "token-1", the next "token-2". A token keeps its
// number for as long as it is in the set, and the number is never reused.
type BearerTokenAuth struct {
	key      [sha256.Size]byte
	tokenSet atomic.Pointer[tokenSet]

	mu          sync.Mutex // held to change the set; guards the fields below
	numbered    int        // how many tokens were ever added
	subscribers []*func()
}

// A tokenSet never changes once it is published.
type tokenSet struct {
	tokens   map[digest]*wasmtools.Principal
	disabled bool
	required bool
	version  uint64 // counts the changes
}

type digest [sha256.Size]byte

// NewBearerTokenAuth returns an enabled set of tokens, which may be empty. It fails if a token can't be used: a token
// has 1 to 1024 bytes of printable ASCII without blanks, since clients could send nothing else unchanged.
func NewBearerTokenAuth(tokens []string) (*BearerTokenAuth, error) {
	a := &BearerTokenAuth{}
	rand.Read(a.key[:]) // never fails: crypto/rand ends the program instead
	a.tokenSet.Store(&tokenSet{})
	if err := a.SetTokens(tokens); err != nil {
		return nil, err
	}
	return a, nil
}

// Next returns the set to use in place of a when a whole configuration is replaced. The new set is enabled, has the given tokens, and says
// whether one is always required. A token that is in both sets keeps its principal and its number. Next does not change a, and nobody
// should change a afterwards, since both sets would give new tokens the same numbers. Next fails as [NewBearerTokenAuth] does.
func (a *BearerTokenAuth) Next(tokens []string, required bool) (*BearerTokenAuth, error) {
	a.mu.Lock()
	next := &BearerTokenAuth{key: a.key, numbered: a.numbered}
	next.tokenSet.Store(&tokenSet{tokens: a.tokenSet.Load().tokens, required: required})
	a.mu.Unlock()
	if err := next.SetTokens(tokens); err != nil {
		return nil, err
	}
	return next, nil
}

// AddToken admits callers that show token. Adding a token again does nothing. It fails as [NewBearerTokenAuth] does.
func (a *BearerTokenAuth) AddToken(token string) error {
	if err := credential.Check(token); err != nil {
		return err
	}
	d := a.digest(token)
	a.change(func(s *tokenSet) {
		if s.tokens[d] == nil {
			s.tokens = maps.Clone(s.tokens)
			s.tokens[d] = a.next()
		}
	})
	return nil
}

// RemoveToken removes a token and reports whether it was there. Removing the last one opens the service to everybody,
// unless SetRequired was called: see [BearerTokenAuth.Open].
func (a *BearerTokenAuth) RemoveToken(token string) bool {
	if credential.Check(token) != nil {
		return false
	}
	d, found := a.digest(token), false
	a.change(func(s *tokenSet) {
		if _, found = s.tokens[d]; found {
			s.tokens = maps.Clone(s.tokens)
			delete(s.tokens, d)
		}
	})
	return found
}

// SetTokens replaces the whole set in one step. It fails, and changes nothing, if one of the tokens can't be used.
func (a *BearerTokenAuth) SetTokens(tokens []string) error {
	digests := make([]digest, len(tokens))
	for i, token := range tokens {
		if err := credential.Check(token); err != nil {
			return fmt.Errorf("token %d of %d: %w", i+1, len(tokens), err)
		}
		digests[i] = a.digest(token)
	}
	a.change(func(s *tokenSet) {
		old := s.tokens
		s.tokens = make(map[digest]*wasmtools.Principal, len(digests))
		for _, d := range digests {
			if s.tokens[d] == nil {
				if s.tokens[d] = old[d]; s.tokens[d] == nil {
					s.tokens[d] = a.next()
				}
			}
		}
	})
	return nil
}

// next returns a principal for a new token. a.mu is held.
func (a *BearerTokenAuth) next() *wasmtools.Principal {
	a.numbered++
	p, err := wasmtools.NewPrincipal("token-"+strconv.Itoa(a.numbered), wasmtools.OriginToken, "*")
	if err != nil {
		panic("auth: " + err.Error()) // name, origin and scope are our own
	}
	return p
}

// Enabled returns what SetEnabled set last. A new BearerTokenAuth is enabled.
func (a *BearerTokenAuth) Enabled() bool { return !a.tokenSet.Load().disabled }

// SetEnabled sets whether the tokens count. While they don't, everybody is admitted, unless SetRequired was called.
func (a *BearerTokenAuth) SetEnabled(on bool) {
	a.change(func(s *tokenSet) { s.disabled = !on })
}

// SetRequired sets whether a token is always required. While it is, callers without a valid token are refused even if the
// set is empty or tokens are disabled. It is off at first.
func (a *BearerTokenAuth) SetRequired(on bool) {
	a.change(func(s *tokenSet) { s.required = on })
}

// Open reports whether everybody is admitted at the moment: a token is not required, and there are no tokens or they are
// disabled.
func (a *BearerTokenAuth) Open() bool { return a.tokenSet.Load().open() }

func (s *tokenSet) open() bool {
	return !s.required && (s.disabled || len(s.tokens) == 0)
}

// Names returns the names of the principals whose tokens count, in the order in which the tokens were added.
func (a *BearerTokenAuth) Names() []string {
	var names []string
	for _, p := range a.tokenSet.Load().tokens {
		names = append(names, p.String())
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // shorter names come first, since numbers have no leading zeros
	return names
}

// Principals returns the principals whose tokens count, in no order.
func (a *BearerTokenAuth) Principals() []*wasmtools.Principal {
	return slices.Collect(maps.Values(a.tokenSet.Load().tokens))
}

// Subscribe calls f after each change of what Open returns, before the method that made the change returns. Calls come one at a time; f
// must not change tokens or subscriptions. The returned function ends the subscription; once it has returned, f is not called any more.
func (a *BearerTokenAuth) Subscribe(f func()) (unsubscribe func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := &f
	a.subscribers = append(a.subscribers, entry)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.subscribers = slices.DeleteFunc(a.subscribers, func(e *func()) bool { return e == entry })
	}
}

// change publishes a copy of the set that f has changed. f must replace the map, not write to it.
func (a *BearerTokenAuth) change(f func(*tokenSet)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.tokenSet.Load()
	next := *old
	f(&next)
	next.version++
	a.tokenSet.Store(&next)
	if next.open() == old.open() {
		return
	}
	for _, f := range a.subscribers {
		(*f)()
	}
}

var _ Verifier = (*BearerTokenAuth)(nil)

// Verify returns the principal of the request's token, or nil if the token is missing or not valid, or if tokens don't count at the
// moment. It does not say what is wrong with a token, which comes from outside and may be anything.
func (a *BearerTokenAuth) Verify(r *http.Request) (*wasmtools.Principal, error) {
	s := a.tokenSet.Load()
	if s.open() {
		return nil, nil
	}
	token := credential.Bearer(r.Header["Authorization"])
	if credential.Check(token) != nil {
		return nil, nil
	}
	return s.tokens[a.digest(token)], nil
}

// Scheme returns the scheme of HTTP's bearer tokens.
func (a *BearerTokenAuth) Scheme() Scheme {
	return Scheme{Name: "bearer", Description: json.RawMessage(`{"type":"http","scheme":"bearer"}`), Challenge: "Bearer", Refusal: "Invalid or missing bearer token"}
}

// Version returns a number that grows with each change: after a change, a request may have another principal, or
// none.
func (a *BearerTokenAuth) Version() uint64 { return a.tokenSet.Load().version }

// digest returns the keyed digest of a token that credential.Check accepts. A key in front of the token is enough, because no digest leaves the
// process. The buffer is on the stack, so requests don't allocate.
func (a *BearerTokenAuth) digest(token string) digest {
	var buf [sha256.Size + credential.Max]byte
	n := copy(buf[:], a.key[:])
	n += copy(buf[n:], token)
	return sha256.Sum256(buf[:n])
}
