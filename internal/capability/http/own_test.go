package http_test

import (
	"strings"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// TestTemplates parses the placeholders for secrets and callers in headers.
func TestTemplates(t *testing.T) {
	t.Parallel()
	const url = "https://a.example"
	for value, fits := range map[string]bool{
		"Bearer ${secret:a}": true, "Bearer ${secret:a@principal}": true, "${secret:a.b-C_1@principal}:${secret:a}": true, "${principal}": true, "<${principal}> ${secret:a@principal}": true, "a@principal": true, "$": true, "}": true,
		"${secret:a@Principal}": false, "${secret:a@principal }": false, "${secret:a@ann}": false, "${secret:a@issued+ann}": false, "${secret:@principal}": false, "${secret:a@principal@principal}": false, "${secret:a@@principal}": false,
		"${secret:../a@principal}": false, "${secret:.a@principal}": false, "${secret:a/b@principal}": false, "${secret: a@principal}": false, "${Principal}": false, "${principal:a}": false, "${principal": false, "${secret:a@principal": false, "${secret:}": false, "${}": false,
	} {
		err := httpcap.Check(httpcap.Rule{Granted: []string{url}, Headers: map[string]map[string]string{url: {"Authorization": value}}})
		if (err == nil) != fits || err != nil && strings.Contains(value, "ann") && strings.Contains(err.Error(), value) {
			t.Errorf("%s: got %v", value, err)
		}
	}
}
