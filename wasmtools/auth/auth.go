// Package auth decides who may call, and who it is that calls: a set of bearer tokens that can change while requests run,
// and the dependency of an application that is made of it.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// MaxToken is the largest length of a token in bytes.
const MaxToken = 1024

// A BearerTokenAuth is a set of tokens, one of which a caller must show. Make one with [NewBearerTokenAuth].
//
// Requests read an immutable state through one atomic pointer and never wait for a change; a change holds for the
// next request. All methods are safe for concurrent use.
//
// Tokens are not kept, only their SHA-256 digests, keyed with a secret that is new for each BearerTokenAuth. Looking
// a digest up takes no time that a caller could learn from: what is compared with what is unknown without the key, so
// neither how far a guess was right, nor which token matched, nor how many there are can be measured.
//
// Each token stands for a principal that may call every tool. Its name is "token-1" for the first token and so on: a token
// keeps its number for as long as it is in the set, and no other token of the process gets the same.
type BearerTokenAuth struct {
	key   [sha256.Size]byte
	state atomic.Pointer[state]

	mu          sync.Mutex // held by those that change state; guards what follows
	numbered    int        // tokens that were ever added
	subscribers []*func()
}

// state never changes once it is published.
type state struct {
	tokens   map[digest]*wasmtools.Principal
	disabled bool
	required bool
}

type digest [sha256.Size]byte

// NewBearerTokenAuth returns an enabled set of tokens, which may be empty. It fails as [CheckToken] does.
func NewBearerTokenAuth(tokens []string) (*BearerTokenAuth, error) {
	a := &BearerTokenAuth{}
	rand.Read(a.key[:]) // never fails: crypto/rand ends the program instead
	a.state.Store(&state{})
	if err := a.SetTokens(tokens); err != nil {
		return nil, err
	}
	return a, nil
}

// CheckToken reports why a token cannot be used, or nil: it is empty, longer than MaxToken, or has a character that
// is not printable ASCII or is a blank, which clients could not send unchanged. The error does not show the token.
func CheckToken(token string) error {
	switch {
	case token == "":
		return errors.New("the token is empty")
	case len(token) > MaxToken:
		return fmt.Errorf("the token has %d bytes, %d are allowed", len(token), MaxToken)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("the token has a character that is no printable ASCII or a blank, at byte %d", i+1)
		}
	}
	return nil
}

// AddToken lets callers in that show token; one that is there already is no error. It fails as [CheckToken] does.
func (a *BearerTokenAuth) AddToken(token string) error {
	if err := CheckToken(token); err != nil {
		return err
	}
	d := a.digest(token)
	a.change(func(s *state) {
		if s.tokens[d] == nil {
			s.tokens = maps.Clone(s.tokens)
			s.tokens[d] = a.next()
		}
	})
	return nil
}

// RemoveToken takes a token back and reports whether it was there. The last one leaves the service open to everybody
// unless SetRequired was called: see [BearerTokenAuth.Open].
func (a *BearerTokenAuth) RemoveToken(token string) bool {
	if CheckToken(token) != nil {
		return false
	}
	d, found := a.digest(token), false
	a.change(func(s *state) {
		if _, found = s.tokens[d]; found {
			s.tokens = maps.Clone(s.tokens)
			delete(s.tokens, d)
		}
	})
	return found
}

// SetTokens makes tokens the whole set, in one step. It fails, and changes nothing, where [CheckToken] refuses one.
func (a *BearerTokenAuth) SetTokens(tokens []string) error {
	digests := make([]digest, len(tokens))
	for i, token := range tokens {
		if err := CheckToken(token); err != nil {
			return fmt.Errorf("token %d of %d: %w", i+1, len(tokens), err)
		}
		digests[i] = a.digest(token)
	}
	a.change(func(s *state) {
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

// next returns the principal of a token that is new. a.mu is held.
func (a *BearerTokenAuth) next() *wasmtools.Principal {
	a.numbered++
	p, err := wasmtools.NewPrincipal("token-"+strconv.Itoa(a.numbered), wasmtools.OriginToken, "*")
	if err != nil {
		panic("auth: " + err.Error()) // none of the three comes from outside
	}
	return p
}

// Enabled reports what SetEnabled said last; a new BearerTokenAuth is enabled.
func (a *BearerTokenAuth) Enabled() bool { return !a.state.Load().disabled }

// SetEnabled says whether callers have to show a token, where there is one.
func (a *BearerTokenAuth) SetEnabled(on bool) {
	a.change(func(s *state) { s.disabled = !on })
}

// SetRequired, when on, has callers show a token always: where there is none, or tokens are disabled, callers without
// a good token are refused instead of let in. It is off at first.
func (a *BearerTokenAuth) SetRequired(on bool) {
	a.change(func(s *state) { s.required = on })
}

// Open reports whether everybody is let in at the moment: no token is required, and there is none or they are disabled.
func (a *BearerTokenAuth) Open() bool { return a.state.Load().open() }

func (s *state) open() bool {
	return !s.required && (s.disabled || len(s.tokens) == 0)
}

// Subscribe has f called after each change of what Open returns, before the method that made it returns. Calls come one
// at a time; f must not change the tokens or subscriptions. The returned function ends the subscription; once it has
// returned, f is not called any more.
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

// change publishes a copy of the state that f has changed. f must replace the map, not write to it.
func (a *BearerTokenAuth) change(f func(*state)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.state.Load()
	next := *old
	f(&next)
	a.state.Store(&next)
	if next.open() == old.open() {
		return
	}
	for _, f := range a.subscribers {
		(*f)()
	}
}

// principal returns who a caller is that shows token, or nil where it is not let in. While the service is open that is
// current, whatever token is shown. token is foreign and may be anything.
func (a *BearerTokenAuth) principal(token string, current *wasmtools.Principal) *wasmtools.Principal {
	s := a.state.Load()
	if s.open() {
		return current
	}
	if CheckToken(token) != nil {
		return nil
	}
	return s.tokens[a.digest(token)]
}

// digest returns the keyed digest of a token that CheckToken accepts. The key in front is enough of a MAC here,
// where no digest ever leaves the process; the buffer on the stack keeps requests free of allocations.
func (a *BearerTokenAuth) digest(token string) digest {
	var buf [sha256.Size + MaxToken]byte
	n := copy(buf[:], a.key[:])
	n += copy(buf[n:], token)
	return sha256.Sum256(buf[:n])
}
