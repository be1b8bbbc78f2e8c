package server_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
)

// TestStartTellsWhatItDecided checks the one log line with the limits, both those that the configuration leaves to the server and those that it sets.
func TestStartTellsWhatItDecided(t *testing.T) {
	t.Parallel()
	c := settings(t)
	for name, test := range map[string]struct {
		c    *config.Config
		want map[string]any
	}{
		"nothing set": {c, map[string]any{"places": float64(4 * runtime.GOMAXPROCS(0)), "places_waiting": float64(max(64, 4*runtime.GOMAXPROCS(0))),
			"processors": float64(runtime.GOMAXPROCS(0)), "queue": float64(64), "least_memory": "128.0 MiB", "cache_directory": c.Tools.CacheDir}},
		"all set": {changed(c, func(c *config.Config) {
			c.Server.Memory, c.Server.CodeMemory, c.Limits.Concurrency, c.Limits.Queue, c.Tools.Modules = 100<<20, 50<<20, 3, 5, 7
		}), map[string]any{"tools_memory": "100.0 MiB", "code_memory": "50.0 MiB", "places": float64(3), "places_waiting": float64(3), "queue": float64(5), "modules": float64(7)}},
	} {
		r := start(t, test.c)
		var line map[string]any
		for text := range strings.Lines(r.log.String()) {
			if strings.Contains(text, `"msg":"limits of this server"`) {
				if line != nil {
					t.Errorf("%s: a second line: %s", name, text)
				}
				if err := json.Unmarshal([]byte(text), &line); err != nil {
					t.Fatal(err)
				}
			}
		}
		for key, want := range test.want {
			if line[key] != want {
				t.Errorf("%s: %s is %v, want %v, in %v", name, key, line[key], want, line)
			}
		}
		for _, key := range []string{"memory", "tools_memory", "code_memory", "heap", "bodies_memory"} {
			if text, _ := line[key].(string); !strings.HasSuffix(text, "iB") {
				t.Errorf("%s: %s is %v, want a size", name, key, line[key])
			}
		}
		for _, key := range []string{"open_files", "connections", "streams"} {
			if n, _ := line[key].(float64); n < 1 {
				t.Errorf("%s: %s is %v, want a number", name, key, line[key])
			}
		}
	}
}
