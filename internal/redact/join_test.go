package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/redact"
)

// TestJoin compares joined redactors with one that was made from all secrets, some of which begin or end alike or contain each other.
// Proves: Secrets stay secret
func TestJoin(t *testing.T) {
	t.Parallel()
	var secrets []string
	for i := range 40 {
		secrets = append(secrets, fmt.Sprintf("the-same-beginning-%d-and-end", i), fmt.Sprintf("%d-another-of-them", i), strings.Repeat("x", 8+i))
	}
	f := redact.NewFamily()
	one := f.New(secrets...)
	var parts []*redact.Redactor
	for _, s := range secrets {
		parts = append(parts, f.New(s), nil)
	}
	joined := f.Join(parts...)
	texts := []string{"", "nothing", strings.Repeat("x", 100), "THE-SAME-BEGINNING-7-AND-END"}
	for _, s := range secrets {
		texts = append(texts, s, "a"+s+s+"b", fmt.Sprintf("%x", s), s[1:], strings.ToUpper(s))
	}
	for _, text := range texts {
		if got, want := joined.String(text), one.String(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got, want := joined.Name(text), one.Name(text); got != want {
			t.Errorf("the name %q: got %q, want %q", text, got, want)
		}
	}
	for i, s := range secrets { // joining did not change the parts
		if got := parts[2*i].String(s); got != redact.Mark {
			t.Errorf("%q alone: got %q", s, got)
		}
		if other := secrets[(i+3)%len(secrets)]; !strings.Contains(other, s) && parts[2*i].String(other) != other {
			t.Errorf("the redactor of %q finds %q", s, other)
		}
	}
	if got := (redact.Chain{nil, f.New("a-first-secret"), joined}).String("a-first-secret a-2 3-another-of-them"); got != "[secret] a-2 [secret]" {
		t.Errorf("a chain: got %q", got)
	}
	if !(redact.Chain{nil, f.Join()}).Empty() || (redact.Chain{nil, joined}).Empty() {
		t.Error("Empty is not right")
	}
}
