package redact_test

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/redact"
)

// TestName checks that secrets are found in names of headers, in any case. Names that lack one byte of a secret are not changed.
// Proves: Secrets stay secret
func TestName(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"hunter2!", "sk_live_51H8mN2eZvKYlo2C0", "Hunter2-Hunter2", "ALLCAPITALS"} {
		r := redact.New(secret)
		for _, change := range []func(string) string{strings.ToLower, strings.ToUpper, http.CanonicalHeaderKey} {
			if got := r.Name("x-" + change(secret) + "-y"); got != "x-"+redact.Mark+"-y" {
				t.Errorf("%q becomes %q", change(secret), got)
			}
			code := hex.EncodeToString([]byte(secret))
			for _, name := range []string{change(secret[1:]), change(secret[:len(secret)-1]), change(code[2:]), change(code[:len(code)-2]), "Content-Type"} {
				if got := r.Name(name); got != name {
					t.Errorf("%q: the name %q becomes %q", secret, name, got)
				}
			}
		}
	}
	if got := (*redact.Redactor)(nil).Name("Content-Type"); got != "Content-Type" {
		t.Errorf("without secrets, a name becomes %q", got)
	}
}
