package kv_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A caller is the principal that calls a tool.
type caller struct{ *wasmtools.Principal }

func (c caller) Who() *wasmtools.Principal { return c.Principal }

func (c caller) id(t *testing.T) personal.ID {
	t.Helper()
	id, err := personal.Of(c.Principal)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// known returns a caller that an issuer knows or, if its name begins with token/, one with a token of the state.
func known(t *testing.T, name string) caller {
	t.Helper()
	origin := "oidc"
	if issued, ok := strings.CutPrefix(name, "token/"); ok {
		name, origin = issued, personal.OriginIssued
	}
	p, err := wasmtools.NewPrincipal(name, origin, "*")
	if err != nil {
		t.Fatal(err)
	}
	return caller{p}
}

// A crowd uses one namespace in which each caller has its own values.
type crowd struct {
	t     *testing.T
	store state.Store
	space *kv.Space
}

func newCrowd(t *testing.T, places int) crowd {
	store := memory.New()
	return crowd{t, store, kv.OpenOwn(store, "notes", state.Usage{Entries: 10}, places)}
}

// A member is one caller of a crowd.
type member struct {
	*guest
	name string
}

func (c crowd) as(name string) member {
	return member{newGuest(c.t, hostcall.Run{Serving: true, Principal: known(c.t, name), Grants: []any{c.space}}), name}
}

// set keeps the caller's name as a value, or returns why that is refused.
func (m member) set(ttl time.Duration) (code string) {
	m.t.Helper()
	_, code = m.do("set", "k", m.name, int(ttl.Milliseconds()), -1)
	return code
}

func (m member) remove() {
	m.t.Helper()
	if _, code := m.do("delete", "k", -1); code != "" {
		m.t.Errorf("%s deletes: got %s", m.name, code)
	}
}

// value returns the value that is found.
func (m member) value() string {
	m.t.Helper()
	answer, code := m.do("get", "k")
	if code != "" {
		m.t.Errorf("%s reads: got %s", m.name, code)
	}
	if len(answer) == 0 {
		return ""
	}
	return string(answer[16:])
}

func (c crowd) set(name string, ttl time.Duration) (code string) { return c.as(name).set(ttl) }
func (c crowd) remove(name string)                               { c.as(name).remove() }
func (c crowd) value(name string) string                         { return c.as(name).value() }

// listed returns the callers that keep values.
func (c crowd) listed() (all []string) {
	c.t.Helper()
	kept, _, err := kv.List(c.t.Context(), c.store, "", 0)
	if err != nil {
		c.t.Error(err)
	}
	for _, k := range kept {
		all = append(all, string(k.Of))
	}
	return all
}

// TestPlaces has callers come and go. A caller without values holds up nobody, and a new caller finds no values of earlier ones.
// Proves: Callers keep apart
func TestPlaces(t *testing.T) {
	t.Parallel()
	t.Run("callers who come and go", func(t *testing.T) {
		t.Parallel()
		c := newCrowd(t, 2)
		for i := range 10 {
			name := fmt.Sprint("guest-", i)
			if got := c.value(name); got != "" {
				t.Errorf("%s finds %q of another caller", name, got)
			}
			if code := c.set(name, 0); code != "" {
				t.Errorf("%s: got %s, want a place", name, code)
			}
			c.remove(name)
		}
		if all := c.listed(); len(all) != 0 {
			t.Errorf("listed are %q", all)
		}
	})
	t.Run("callers whose values expire", func(t *testing.T) {
		t.Parallel()
		c := newCrowd(t, 1)
		for i := range 3 {
			for began := time.Now(); ; {
				code := c.set(fmt.Sprint("guest-", i), time.Millisecond)
				if code == "" {
					break
				}
				if time.Since(began) > 10*time.Second {
					t.Fatalf("guest %d: got %s, long after the previous guest's values expired", i, code)
				}
			}
		}
	})
	t.Run("a caller with values stays", func(t *testing.T) {
		t.Parallel()
		c := newCrowd(t, 2)
		c.set("ann", 0)
		c.set("bob", 0)
		for range 3 {
			if code := c.set("mallory", 0); code != "quota" {
				t.Errorf("one caller too many: got %q", code)
			}
		}
		if c.value("ann") != "ann" || c.value("bob") != "bob" || c.value("mallory") != "" {
			t.Error("somebody lost or won a value")
		}
		if all := c.listed(); len(all) != 2 {
			t.Errorf("listed are %q", all)
		}
		c.remove("bob")
		if code := c.set("carol", 0); code != "" {
			t.Errorf("carol takes bob's place: got %s", code)
		}
		if code := c.set("bob", 0); code != "quota" || c.value("bob") != "" || c.value("carol") != "carol" {
			t.Errorf("bob comes back while all places are taken: got %q", code)
		}
		c.remove("ann")
		if code := c.set("bob", 0); code != "" || c.value("bob") != "bob" {
			t.Errorf("bob comes back after ann has left: got %q", code)
		}
	})
	t.Run("tokens made by one caller", func(t *testing.T) {
		t.Parallel()
		c := newCrowd(t, 8)
		for i := range 10 {
			name := fmt.Sprint("token/mal/", i)
			if code := c.set(name, 0); code != "" {
				t.Errorf("%s: got %s, want a place", name, code)
			}
			if i >= 1 { // two places are for such tokens
				c.remove(fmt.Sprint("token/mal/", i-1))
			}
		}
		c.set("token/mal/0", 0)
		if code := c.set("token/mal/1", 0); code != "quota" {
			t.Errorf("a third token: got %q", code)
		}
	})
	t.Run("looking at places is charged", func(t *testing.T) {
		t.Parallel()
		c := newCrowd(t, 50)
		for i := range 50 {
			c.set(fmt.Sprint("guest-", i), 0)
		}
		g := c.as("mallory")
		if _, code := g.do("set", "k", "v", 0, -1); code != "quota" || g.Charged() < 50*3_000 {
			t.Errorf("got %q, and %d ns were charged", code, g.Charged())
		}
	})
}

// TestPlacesRace has more callers than places, which set and delete values all the time: a caller whose set succeeded has the value and is listed.
// Nobody keeps values without a place.
// Proves: Callers keep apart
func TestPlacesRace(t *testing.T) {
	t.Parallel()
	const callers, most = 12, 4
	c := newCrowd(t, most)
	var working sync.WaitGroup
	for i := range callers {
		working.Go(func() {
			name := fmt.Sprint("guest-", i)
			if i%3 == 0 {
				name = fmt.Sprint("token/mal/", i)
			}
			random, m := rand.New(rand.NewPCG(uint64(i), 1)), c.as(name)
			for range 300 {
				switch code := m.set(0); {
				case code != "" && code != "quota":
					t.Errorf("%s: got %s", name, code)
				case code == "" && m.value() != name:
					t.Errorf("%s finds %q", name, m.value())
				case code == "quota" && m.value() != "":
					t.Errorf("%s was refused, and finds %q", name, m.value())
				}
				if random.IntN(4) > 0 {
					m.remove()
				}
				if i == 1 && random.IntN(20) == 0 {
					if _, err := kv.Erase(t.Context(), c.store, known(t, name).id(t)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	working.Wait()
	kept := map[string]bool{}
	for i := range callers {
		for _, name := range []string{fmt.Sprint("guest-", i), fmt.Sprint("token/mal/", i)} {
			if id := known(t, name).id(t); c.value(name) != "" {
				kept[string(id)] = true
			}
		}
	}
	if len(kept) > most {
		t.Errorf("%d callers keep something in %d places", len(kept), most)
	}
	all := c.listed()
	for _, id := range all {
		if !kept[id] {
			t.Errorf("%s is listed, and keeps nothing", id)
		}
		delete(kept, id)
	}
	if len(kept) > 0 {
		t.Errorf("these keep something and are not listed: %v", kept)
	}
}
