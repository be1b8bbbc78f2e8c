package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettings checks that the settings that `toolsrv mcp --print-config` prints for each client lead to the tools, over stdio and over
// HTTP with a token. settings.py reads the settings as the clients do.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := prepare(t, "[auth]\ntokens = ['"+token+"']\n")
	if err := s.put(filepath.Join(setting(t, "TOOLS"), "math.wasm"), "math.wasm"); err != nil {
		t.Fatal(err)
	}
	url := s.start(t, nil)
	programs := map[string]string{}
	for _, client := range []string{"claude", "claude-code", "codex", "cursor", "gemini", "vscode", "windsurf", "zed"} {
		for way, arguments := range map[string][]string{"stdio": {s.tools}, "HTTP": {"--url", url}} {
			if client == "claude" && way == "HTTP" {
				continue // this client's settings can't have an address
			}
			settings, stderr, err := run(t, clientLimit, nil, append([]string{setting(t, "TOOLSRV"), "mcp", "--print-config", client}, arguments...)...)
			if err != nil {
				t.Fatalf("toolsrv mcp --print-config %s: %v\n%s", client, err, stderr)
			}
			programs[client+" over "+way] = settings
		}
	}
	input, err := json.Marshal(programs)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, setting(t, "PYTHON"), here("settings.py"), token)
	cmd.Stdin = bytes.NewReader(input)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	report(t, string(out), len(programs))
	if err != nil || t.Failed() {
		t.Errorf("settings.py: %v\n%s", err, clip(said.String()))
	}
}
