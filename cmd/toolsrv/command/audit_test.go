package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEndlessAudit reads the audit of servers that always say that there are more entries, but send none, or the same ones again.
func TestEndlessAudit(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string]string{
		"none":           `[]`,
		"the same":       `[{"number":7,"hash":"x"}]`,
		"an earlier one": `[{"number":9,"hash":"x"},{"number":8,"hash":"x"}]`,
	} {
		for _, flags := range []string{"", "--all", "--all --json", "--follow", "--follow --json"} {
			t.Run(name+" "+flags, func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int64
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if asked.Add(1) > 1000 {
						w.WriteHeader(http.StatusInternalServerError) // or the test would not end
						return
					}
					_, _ = io.WriteString(w, fmt.Sprintf(`{"entries":%s,"more":true}`, entries))
				}))
				t.Cleanup(s.Close)
				code, _, stderr := run(append(strings.Fields("audit "+flags), "--server", s.URL)...)
				if code != 1 || !strings.Contains(stderr, "without an end") || asked.Load() > 2 {
					t.Errorf("after %d requests: got %d, %s", asked.Load(), code, stderr)
				}
			})
		}
	}
}
