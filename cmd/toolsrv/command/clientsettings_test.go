package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrintConfig checks the settings of every client: for a server that the client starts, and for one that it reaches over HTTP.
func TestPrintConfig(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	start := `"command": ` + quoted(self) + `, "args": ["mcp", ` + quoted(tools) + `]`
	const address = `"https://tools.example.com/mcp"`
	for client, want := range map[string]struct{ stdio, http string }{
		"claude": {`{"mcpServers": {"toolsrv": {` + start + `}}}`, ""},
		"claude-code": {`{"mcpServers": {"toolsrv": {"type": "stdio", ` + start + `}}}`,
			`{"mcpServers": {"toolsrv": {"type": "http", "url": ` + address + `, "headers": {"Authorization": "Bearer ${TOOLSRV_TOKEN}"}}}}`},
		"cursor": {`{"mcpServers": {"toolsrv": {` + start + `}}}`,
			`{"mcpServers": {"toolsrv": {"url": ` + address + `, "headers": {"Authorization": "Bearer ${env:TOOLSRV_TOKEN}"}}}}`},
		"gemini": {`{"mcpServers": {"toolsrv": {` + start + `}}}`,
			`{"mcpServers": {"toolsrv": {"httpUrl": ` + address + `, "headers": {"Authorization": "Bearer ${TOOLSRV_TOKEN}"}}}}`},
		"vscode": {`{"servers": {"toolsrv": {"type": "stdio", ` + start + `}}}`,
			`{"servers": {"toolsrv": {"type": "http", "url": ` + address + `, "headers": {"Authorization": "Bearer ${input:toolsrv-token}"}}},
				"inputs": [{"type": "promptString", "id": "toolsrv-token", "description": "Token of toolsrv", "password": true}]}`},
		"windsurf": {`{"mcpServers": {"toolsrv": {` + start + `}}}`,
			`{"mcpServers": {"toolsrv": {"serverUrl": ` + address + `, "headers": {"Authorization": "Bearer ${env:TOOLSRV_TOKEN}"}}}}`},
		"zed": {`{"context_servers": {"toolsrv": {` + start + `}}}`,
			`{"context_servers": {"toolsrv": {"url": ` + address + `, "headers": {"Authorization": "Bearer TOOLSRV_TOKEN"}}}}`},
		"codex": {"[mcp_servers.toolsrv]\ncommand = " + quoted(self) + "\nargs = [\"mcp\", " + quoted(tools) + "]\n",
			"[mcp_servers.toolsrv]\nurl = " + address + "\nbearer_token_env_var = \"TOOLSRV_TOKEN\"\n"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run("mcp", tools, "--print-config", client)
			if code != 0 || !sameSettings(stdout, want.stdio) || !strings.Contains(stderr, "Put it into ") {
				t.Errorf("of a command: exit code %d, got %s%s, want %s", code, stdout, stderr, want.stdio)
			}
			code, stdout, stderr = run("mcp", "--print-config", client, "--url", "https://tools.example.com")
			if want.http == "" {
				if code != 2 || stdout != "" || !strings.Contains(stderr, "can't hold an address") {
					t.Errorf("of an address: exit code %d, got %s%s, want an error", code, stdout, stderr)
				}
			} else if code != 0 || !sameSettings(stdout, want.http) || !strings.Contains(stderr, "The token: ") {
				t.Errorf("of an address: exit code %d, got %s%s, want %s", code, stdout, stderr, want.http)
			}
		})
	}
}

// sameSettings reports whether two settings are the same text, or the same JSON.
func sameSettings(got, want string) bool {
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return got == want
	}
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return string(one) == string(other)
}

// TestPrintConfigCommand checks that the command in the settings serves the same, whatever folder the client starts it in.
func TestPrintConfigCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"a b.wasm": "", "ü.wasm": "", "toolsrv.toml": "[tools]\ndirectory = \".\"\n", "wrong.toml": "[tols]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct{ args, want []string }{
		"a file in a folder": {[]string{filepath.Join(dir, "..", filepath.Base(dir), "a b.wasm")}, []string{"mcp", in("a b.wasm")}},
		"files":              {[]string{in("a b.wasm"), in("ü.wasm")}, []string{"mcp", in("a b.wasm"), in("ü.wasm")}},
		"a configuration":    {[]string{"--config", in("toolsrv.toml")}, []string{"mcp", "--config", in("toolsrv.toml")}},
		"a level":            {[]string{dir, "--log-level", "warn"}, []string{"mcp", dir, "--log-level", "warn"}},
		"a name of its own":  {[]string{dir, "--name", "house-tools_2"}, []string{"mcp", dir}},
	} {
		code, stdout, stderr := run(append([]string{"mcp", "--print-config", "claude"}, c.args...)...)
		var got struct {
			Servers map[string]struct{ Args []string } `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || len(got.Servers) != 1 {
			t.Errorf("%s: exit code %d, %v, %s%s", name, code, err, stdout, stderr)
		}
		for server, entry := range got.Servers {
			if strings.Join(entry.Args, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("%s: got %q, want %q", name, entry.Args, c.want)
			}
			if want := strings.HasPrefix(name, "a name"); (server == "house-tools_2") != want {
				t.Errorf("%s: the server is called %q", name, server)
			}
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such client":        {[]string{dir, "--print-config", "claud"}, 2, "did you mean claude?"},
		"nothing like a client": {[]string{dir, "--print-config", "netscape"}, 2, "the clients are claude, claude-code, codex, "},
		"no client":             {[]string{dir, "--print-config", ""}, 2, `unknown client ""`},
		"a name with a dot":     {[]string{dir, "--print-config", "codex", "--name", "a.b"}, 2, `--name: "a.b" is not a valid name`},
		"no such file":          {[]string{in("c.wasm"), "--print-config", "claude"}, 1, "c.wasm"},
		"a wrong configuration": {[]string{"--config", in("wrong.toml"), "--print-config", "claude"}, 1, `did you mean "tools"?`},
		"no address":            {[]string{"--print-config", "cursor", "--url", ""}, 2, "is not an address such as https://"},
		"not HTTP":              {[]string{"--print-config", "cursor", "--url", "localhost:8000"}, 2, "is not an address such as https://"},
		"a password":            {[]string{"--print-config", "cursor", "--url", "https://me:secret@tools.example.com/mcp"}, 2, "clients send a token instead"},
		"an address, a grant":   {[]string{"--print-config", "cursor", "--url", "https://tools.example.com", "--allow-http", "https://a.example"}, 2, "leave out --allow-http, or --url"},
		"an address and files":  {[]string{dir, "--print-config", "cursor", "--url", "https://tools.example.com"}, 2, "leave out the files and --config, or --url"},
	} {
		code, stdout, stderr := run(append([]string{"mcp"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, %q, %q, want %d and %q", name, code, stdout, stderr, c.code, c.says)
		}
	}
}
