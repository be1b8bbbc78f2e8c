package server_test

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// fixtures returns a configuration that also serves fixtures, each as a namespace whose tools are called t0, t1 and so on.
func fixtures(t *testing.T, tools int, of map[string]string) *config.Config {
	t.Helper()
	c := settings(t)
	for namespace, fixture := range of {
		list := make([]string, tools)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"t%d","description":"x","parameters":{"type":"object"}}`, i)
		}
		manifest := fmt.Sprintf(`{"abi":1,"namespace":%q,"tools":[%s]}`, namespace, strings.Join(list, ","))
		testkit.Put(t, c.Tools.Directory, namespace+".wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, fixture), manifest))
	}
	return c
}

// TestClientGone closes the connection of a call while its guest computes, sleeps, or calls the host all the time, over REST and over MCP.
// The guest ends with the connection, within a millisecond or two on a quiet machine. The test is not parallel, because while guests of
// other tests compute, Go checks the network only every 10 ms.
// Proves: A tool stops
func TestClientGone(t *testing.T) {
	c := fixtures(t, 5, map[string]string{"reports": "wat/hostile/progress", "spins": "wat/hostile/spin"})
	c.Limits = limits.Limits{Timeout: time.Hour}
	r := start(t, c)
	rest := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	}
	for _, test := range []struct{ name, sends, waits string }{
		{"computes", rest("/spins/t0"), ""},
		{"sleeps", rest("/spins/t4"), ""},
		{"reports, unheard", rest("/reports/t0"), ""},
		{"computes, over MCP", mcpCall("spins-t0"), ""},
		{"sleeps, over MCP", mcpCall("spins-t4"), ""},
		{"reports, over MCP", mcpCall("reports-t0"), `"progress":3`},
	} {
		var took []time.Duration
		for len(took) < 10 || len(took) < 100 && slices.Min(took) > 5*time.Millisecond { // on a busy machine, most guests would wait for a processor
			conn := r.dial()
			if _, err := io.WriteString(conn, test.sends); err != nil {
				t.Fatal(err)
			}
			testkit.Until(t, "the guest to run", func() bool { return r.Calls() == 1 })
			for lines := bufio.NewScanner(conn); test.waits != "" && lines.Scan() && !strings.Contains(lines.Text(), test.waits); {
			}
			ended := r.log.Count(`"code":"cancelled"`)
			begun := time.Now()
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			r.log.WaitFor(t, "the end of the call", func(string) bool { return r.log.Count(`"code":"cancelled"`) > ended })
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		t.Logf("a guest that %s ends %v to %v after its connection", test.name, took[0], took[len(took)-1])
		if !testkit.Race(t) && took[0] > 5*time.Millisecond {
			t.Errorf("at best, a guest that %s ends %v after its connection", test.name, took)
		}
	}
}
