package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

func newAuth(t testing.TB, tokens ...string) *auth.BearerTokenAuth {
	t.Helper()
	a, err := auth.NewBearerTokenAuth(tokens)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var badTokens = map[string]string{
	"empty":       "",
	"blank":       " ",
	"blank in it": "zq zq",
	"tab":         "zq\tzq",
	"line feed":   "zqzq\n",
	"null":        "zq\x00zq",
	"delete":      "zqzq\x7f",
	"not ASCII":   "zökén",
	"broken text": "\xff\xfe",
	"too long":    strings.Repeat("x", credential.Max+1),
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	for name, token := range badTokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if a, err := auth.NewBearerTokenAuth([]string{"good", token}); err == nil || a != nil {
				t.Errorf("NewBearerTokenAuth: got %v, %v, want an error", a, err)
			} else if !strings.Contains(err.Error(), "token 2 of 2") {
				t.Errorf("NewBearerTokenAuth: got %q, which does not say which token", err)
			} else if strings.Contains(err.Error(), strings.TrimSpace(token)) && strings.TrimSpace(token) != "" {
				t.Errorf("NewBearerTokenAuth: the error shows the token: %q", err)
			}
			a := newAuth(t, "good")
			if err := a.AddToken(token); err == nil {
				t.Error("AddToken: got nil, want an error")
			}
			if err := a.SetTokens([]string{"other", token}); err == nil {
				t.Error("SetTokens: got nil, want an error")
			}
			if a.RemoveToken(token) {
				t.Error("RemoveToken: got true")
			}
			if check(a, "Bearer "+token) {
				t.Error("the token is accepted")
			}
			if !check(a, "Bearer good") || check(a, "Bearer other") {
				t.Error("a refused change had an effect")
			}
		})
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("~", credential.Max)
	a := newAuth(t, "one", "two", "one", longest)
	want := func(step string, tokens map[string]bool) {
		t.Helper()
		for token, ok := range tokens {
			if got := check(a, "Bearer "+token); got != ok {
				t.Errorf("%s: token %.20q: got %t, want %t", step, token, got, ok)
			}
		}
	}
	want("new", map[string]bool{"one": true, "two": true, longest: true, "three": false, "on": false, "onee": false, "One": false, longest[1:]: false})
	if err := a.AddToken("three"); err != nil {
		t.Fatal(err)
	}
	if err := a.AddToken("three"); err != nil {
		t.Errorf("AddToken again: %v", err)
	}
	want("added", map[string]bool{"one": true, "three": true})
	if !a.RemoveToken("one") || a.RemoveToken("one") || a.RemoveToken("four") {
		t.Error("RemoveToken: want true for a token in the set, and false after that and for other tokens")
	}
	want("removed", map[string]bool{"one": false, "two": true, "three": true})
	if err := a.SetTokens([]string{"four"}); err != nil {
		t.Fatal(err)
	}
	want("set", map[string]bool{"two": false, "three": false, longest: false, "four": true})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		token, disabled, required bool
		open, withToken, without  bool
	}{
		"no token":                     {open: true, withToken: true, without: true},
		"a token":                      {token: true, withToken: true},
		"disabled":                     {token: true, disabled: true, open: true, withToken: true, without: true},
		"required, no token":           {required: true},
		"required, a token":            {token: true, required: true, withToken: true},
		"required, disabled":           {token: true, disabled: true, required: true, withToken: true},
		"required, disabled, no token": {disabled: true, required: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuth(t)
			if tt.token {
				if err := a.AddToken("good"); err != nil {
					t.Fatal(err)
				}
			}
			a.SetEnabled(!tt.disabled)
			a.SetRequired(tt.required)
			if got := a.Enabled(); got != !tt.disabled {
				t.Errorf("Enabled: got %t", got)
			}
			if got := a.Open(); got != tt.open {
				t.Errorf("Open: got %t, want %t", got, tt.open)
			}
			if got := check(a, "Bearer good"); got != tt.withToken {
				t.Errorf("with the token: got %t, want %t", got, tt.withToken)
			}
			if got := check(a, "Bearer bad"); got != tt.without {
				t.Errorf("with another token: got %t, want %t", got, tt.without)
			}
			if got := check(a); got != tt.without {
				t.Errorf("without a header: got %t, want %t", got, tt.without)
			}
		})
	}
}

func TestLastTokenRemoved(t *testing.T) {
	t.Parallel()
	a := newAuth(t, "good")
	a.RemoveToken("good")
	if !a.Open() || !check(a) {
		t.Error("the last token was removed, and the service is not open")
	}
	a.SetRequired(true)
	if a.Open() || check(a) || check(a, "Bearer good") {
		t.Error("tokens are required, and a caller without one is let in")
	}
}

// TestHammer changes everything while requests run: a token that is always there must always be accepted, a
// token that was never there must never be, and no change may be lost.
// Proves: Secrets stay secret
func TestHammer(t *testing.T) {
	t.Parallel()
	const rounds = 200
	a := newAuth(t, "always")
	var changers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !check(a, "Bearer always") {
					t.Error("a good token is refused")
					return
				}
				if check(a, "Bearer never") || check(a) {
					t.Error("a bad token is let in")
					return
				}
			}
		})
	}
	for i := range 4 {
		changers.Go(func() {
			for j := range rounds {
				token := fmt.Sprintf("token-%d-%d", i, j)
				if err := a.AddToken(token); err != nil {
					t.Error(err)
				}
				if !check(a, "Bearer "+token) {
					t.Errorf("%s was added and is refused", token)
				}
				if j%2 == 0 {
					if !a.RemoveToken(token) {
						t.Errorf("%s was added and is missing", token)
					}
					if check(a, "Bearer "+token) {
						t.Errorf("%s was removed and is let in", token)
					}
				}
				a.SetEnabled(true)
				a.SetRequired(j%3 == 0)
			}
		})
	}
	changers.Wait()
	close(done)
	readers.Wait()
	for i := range 4 {
		for j := range rounds {
			token := fmt.Sprintf("token-%d-%d", i, j)
			if got, want := check(a, "Bearer "+token), j%2 == 1; got != want {
				t.Fatalf("%s: got %t, want %t", token, got, want)
			}
		}
	}
}

// TestSubscribe checks that subscribers are called each time that the service opens or closes, and not otherwise.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	a := newAuth(t)
	b := auth.Dependency(a)
	var told []bool
	unsubscribe := b.Subscribe(func() { told = append(told, !b.Open()) })
	for _, change := range []func(){
		func() { _ = a.AddToken("one") }, func() { _ = a.AddToken("two") }, func() { a.RemoveToken("one") },
		func() { a.SetEnabled(false) }, func() { a.RemoveToken("none") }, func() { a.SetRequired(true) },
		func() { a.SetEnabled(true) }, func() { _ = a.SetTokens(nil) }, func() { a.SetRequired(false) },
	} {
		change()
	}
	unsubscribe()
	unsubscribe()
	_ = a.AddToken("late")
	if got, want := fmt.Sprint(told), "[true false true false]"; got != want {
		t.Errorf("subscribers got %s, want %s", got, want)
	}
}
