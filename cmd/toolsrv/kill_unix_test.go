//go:build unix

package main_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	asking "github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestKilledAdmin lets operators change tokens and switches over the admin socket, and kills the server at random moments, with a signal that can't
// be caught. The next server has every confirmed change, and its entry in the audit, whose chain is unaltered. TOOLSRV_KILLS is the number of kills.
// Proves: State is whole and apart
func TestKilledAdmin(t *testing.T) {
	t.Parallel()
	kills := 10
	if text := os.Getenv("TOOLSRV_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "tsv") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[state]\ndirectory = \"kept\"\n[audit]\nstrict = true\n"))
	put(t, filepath.Join(dir, "tools", "shop.wasm"), guest(t, "shop", "1.0.0", "echo"))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var operators []*operator
	for i := range 4 {
		operators = append(operators, &operator{name: fmt.Sprint("of", i), random: rand.New(rand.NewPCG(seed, uint64(i))), tokens: map[string]string{}, secrets: map[string]string{}})
	}
	operators[0].switches = true // only one operator switches: two would undo each other's switches
	random := rand.New(rand.NewPCG(seed, 99))
	answered, lost := 0, 0
	for kill := range kills {
		s := start(t, dir)
		over, err := asking.OverSocket(filepath.Join(dir, "kept", socket.Name))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range operators {
			if o.adopt(t, s, over) {
				lost++
			}
		}
		checkAudit(t, over, operators)
		if t.Failed() {
			t.Fatalf("after %d kills", kill)
		}
		answered += changeUntilKilled(t, s, over, operators, random)
		over.Close()
	}
	t.Logf("%d kills during %d confirmed changes; %d unconfirmed changes had been made", kills, answered, lost)
	if answered < kills {
		t.Error("too few changes were made")
	}
}

// changeUntilKilled lets all operators make changes, and kills the server after some of them. It returns how many changes were confirmed.
func changeUntilKilled(t *testing.T, s *service, over *asking.Client, operators []*operator, random *rand.Rand) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var done atomic.Int64
	last, later := int64(random.IntN(40)), time.Duration(random.IntN(2000))*time.Microsecond
	var work sync.WaitGroup
	kill := sync.OnceFunc(func() {
		time.Sleep(later) // the server was killed between two answers
		_ = s.cmd.Process.Kill()
	})
	for _, o := range operators {
		work.Go(func() {
			for o.change(ctx, t, over) {
				if done.Add(1) > last {
					go kill()
				}
			}
		})
	}
	work.Wait()
	<-s.exited
	return int(done.Load())
}

// An operator changes their own tokens and switches, one after another.
type operator struct {
	name     string
	random   *rand.Rand
	switches bool

	made    int               // the number of tokens requested so far
	tokens  map[string]string // the scopes of existing tokens, by their names
	secrets map[string]string // the secrets of tokens whose secret was returned
	ended   string            // a secret that is no longer accepted
	off     bool              // whether the tool is off
	done    []string          // the required entries of the audit: action and target
	asked   *asked            // the change without an answer
}

// asked is a change that may have been made.
type asked struct {
	token, scopes string // of a token; scopes are empty if it is revoked
	off           bool   // or else of the switch
	entry         string
}

// change makes a random change, and reports whether it was confirmed.
func (o *operator) change(ctx context.Context, t *testing.T, over *asking.Client) bool {
	scopes := fmt.Sprintf("shop/e%d", o.random.IntN(1_000_000))
	names := make([]string, 0, len(o.tokens))
	for name := range o.tokens {
		names = append(names, name)
	}
	slices.Sort(names)
	var arguments any
	what, a := "tokens add", &asked{scopes: scopes}
	switch choice := o.random.IntN(6); {
	case choice == 0 && o.switches:
		what, a = "disable", &asked{off: !o.off, entry: "/shop/echo"}
		if o.off {
			what = "enable"
		}
		arguments = admin.Switched{Names: []string{"shop/echo"}}
	case choice < 3 || len(names) == 0:
		o.made++
		a.token = fmt.Sprint(o.name, "-", o.made)
		arguments = admin.NewToken{Name: a.token, Scopes: []string{scopes}}
	case choice == 3:
		what, a.token = "tokens scopes", names[o.random.IntN(len(names))]
		arguments = admin.TokenScopes{Name: a.token, Scopes: []string{scopes}}
	case choice == 4:
		what, a.token = "tokens rotate", names[o.random.IntN(len(names))]
		a.scopes = o.tokens[a.token]
		arguments = admin.Rotation{Name: a.token}
	default:
		what, a.token, a.scopes = "tokens revoke", names[o.random.IntN(len(names))], ""
		arguments = admin.TokenName{Name: a.token}
	}
	if a.token != "" {
		a.entry = a.token
	}
	a.entry = strings.ReplaceAll(what, " ", ".") + " " + a.entry
	o.asked = a
	answer, err := over.Do(ctx, what, arguments, "")
	if refused, ok := errors.AsType[*wasmtools.Error](err); ok {
		t.Errorf("%s %+v: %v", what, arguments, refused)
	}
	if err != nil {
		return false
	}
	o.note()
	var made admin.TokenMade
	if err := answer.Into(&made); err != nil {
		t.Error(err)
	}
	if made.Secret != "" {
		o.secrets[a.token] = made.Secret
	}
	return true
}

// note records a change that the server has confirmed.
func (o *operator) note() {
	switch a := o.asked; {
	case a.token == "":
		o.off = a.off
	case a.scopes == "":
		o.end(a.token)
		delete(o.tokens, a.token)
	default:
		if strings.HasPrefix(a.entry, "tokens.rotate") {
			o.end(a.token)
		}
		o.tokens[a.token] = a.scopes
	}
	o.done = append(o.done, o.asked.entry)
	o.asked = nil
}

// end records that a secret is no longer accepted.
func (o *operator) end(token string) {
	if secret := o.secrets[token]; secret != "" {
		o.ended = secret
	}
	delete(o.secrets, token)
}

// adopt compares the state of a server with the required one. It reports whether the last change, which the server had no time to confirm, was made.
func (o *operator) adopt(t *testing.T, s *service, over *asking.Client) (unanswered bool) {
	t.Helper()
	now := &operator{tokens: map[string]string{}}
	var all admin.Tokens
	ask(t, over, "tokens list", struct{}{}, &all)
	for _, one := range all.Tokens {
		if strings.HasPrefix(one.Name, o.name+"-") {
			now.tokens[one.Name] = strings.Join(one.Scopes, " ")
		}
	}
	if o.switches {
		var all admin.Switches
		ask(t, over, "switches", struct{}{}, &all)
		now.off = len(all.Switches) > 0 && !all.Switches[0].Enabled
	}
	if !o.is(now) && o.asked != nil {
		o.note()
		unanswered = true
	} else if o.asked != nil && strings.HasPrefix(o.asked.entry, "tokens.rotate") { // nothing shows whether this change was made
		delete(o.secrets, o.asked.token)
	}
	o.asked = nil
	if !o.is(now) {
		t.Errorf("%s: there is %v (off: %t), want %v (%t)", o.name, now.tokens, now.off, o.tokens, o.off)
	}
	o.show(t, s, o.ended, http.StatusUnauthorized)
	for _, secret := range o.secrets {
		o.show(t, s, secret, http.StatusOK)
		break
	}
	return unanswered
}

// show makes a request with a token's secret, and returns the status.
func (o *operator) show(t *testing.T, s *service, secret string, want int) {
	t.Helper()
	if secret == "" {
		return
	}
	if got := s.do(request{method: http.MethodGet, path: "/tools", token: secret}).status; got != want {
		t.Errorf("%s: a token gets the status %d, want %d", o.name, got, want)
	}
}

// is reports whether both lists have the same elements.
func (o *operator) is(other *operator) bool {
	if len(o.tokens) != len(other.tokens) || o.off != other.off {
		return false
	}
	for name, scopes := range o.tokens {
		if other.tokens[name] != scopes {
			return false
		}
	}
	return true
}

// checkAudit verifies the audit, and checks that it has an entry for each change that was made.
func checkAudit(t *testing.T, over *asking.Client, operators []*operator) {
	t.Helper()
	var verified admin.Verified
	if ask(t, over, "audit verify", struct{}{}, &verified); !verified.OK {
		t.Errorf("the audit is damaged: %s", verified.Problem)
	}
	entries := map[string]int{}
	for after, more := 0, true; more; {
		var part admin.Audit
		ask(t, over, "audit", admin.AuditArguments{After: after}, &part)
		for _, e := range part.Entries {
			entries[e.Action+" "+e.Target]++
			after = int(e.Number)
		}
		more = part.More
	}
	wanted := map[string]int{}
	for _, o := range operators {
		for _, entry := range o.done {
			wanted[entry]++
		}
	}
	for entry, n := range wanted {
		if entries[entry] < n {
			t.Errorf("the audit has %d entries %q, of %d in total", entries[entry], entry, n)
		}
	}
}

func ask(t *testing.T, over *asking.Client, what string, arguments, to any) {
	t.Helper()
	answer, err := over.Do(t.Context(), what, arguments, "")
	if err == nil {
		err = answer.Into(to)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
