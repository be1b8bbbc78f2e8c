package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestBy has an issuer that gives a caller somebody else's name: readers of the audit can tell them apart.
func TestBy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, origin, realm string
		local               bool
		want                string
	}{
		{"uid 0 (root)", "socket", "", true, "uid 0 (root)"},
		{"uid 0 (root)", "oidc", "https://id.example.com", false, "uid 0 (root) (oidc)"},
		{"uid 0 (root)", "certificate", "", false, "uid 0 (root) (certificate)"},
		{"ci", "issued", "", false, "ci"},
		{"ci", "oidc", "https://id.example.com", false, "ci (oidc)"},
	} {
		p, err := wasmtools.NewPrincipal(test.name, test.origin)
		if err == nil {
			p, err = p.WithRealm(test.realm)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Request{Principal: p, Local: test.local}).by(); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// TestReason refuses reasons that callers and the audit must not contain.
func TestReason(t *testing.T) {
	t.Parallel()
	store := tokens.Open(memory.New(), tokens.Options{})
	defer store.Close()
	secret, _, err := store.Add(t.Context(), tokens.Spec{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	for reason, want := range map[string]string{
		"":                             "",
		"it rains\nand\tsnows":         "",
		"tsv_ is how tokens begin":     "",
		secret[:len(secret)-1]:         "",
		"a\x1b[31m":                    "has a control character",
		"use tsv_" + secret + " now":   "contains a token",
		"leaked: " + secret:            "contains a token",
		strings.Repeat("tsv_", 250):    "",
		strings.ToUpper(secret) + "\r": "has a control character",
	} {
		if err := checkReason(reason); (want == "") != (err == nil) || want != "" && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%q: got %v, want %q", reason, err, want)
		}
	}
}

// TestWorded has changes that fail because of the audit or the state: each error says once that nothing was changed.
func TestWorded(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%w: it is cut off", state.ErrUnavailable)
	for name, of := range map[string]func(error) error{"a token": tokenError, "a secret": secretError} {
		for _, err := range []error{away, notKept(fmt.Errorf("%w: %w", audit.ErrNotKept, away))} {
			got, ok := of(err).(*wasmtools.Error)
			if !ok || got.Code != wasmtools.CodeNotReady || strings.Count(got.Message, "Nothing was changed") != 1 {
				t.Errorf("%s: the caller's error for %v is %v", name, err, got)
			}
		}
	}
}
