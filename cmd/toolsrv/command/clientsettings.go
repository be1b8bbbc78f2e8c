package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// tokenVariable is the environment variable with the token that clients send to a server over HTTP.
const tokenVariable = "TOOLSRV_TOKEN"

// An agent is an MCP client, with the form of its settings.
type agent struct {
	name string
	// title is the client's own name, and file says where its settings are.
	title, file string
	// table is the member or table of the settings that contains the servers by name.
	table string
	// isTOML is whether the settings are TOML rather than JSON.
	isTOML bool
	// typed is whether an entry says how the server is reached.
	typed bool
	// address returns the entry of a server that is reached over HTTP. If nil, the client's settings can't have such servers.
	address func(url string) entry
	// token says how the client gets the token of that server.
	token string
	// inputs are the values that the client asks its user for.
	inputs []input
}

// An entry describes one server in a client's settings.
type entry struct {
	Type      string            `json:"type,omitempty"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	URL       string            `json:"url,omitempty"`
	ServerURL string            `json:"serverUrl,omitempty"`
	HTTPURL   string            `json:"httpUrl,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`

	bearerVariable string // for TOML
}

// An input is a value that VS Code asks for.
type input struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Password    bool   `json:"password"`
}

// clients returns all known clients by name.
func clients() []agent {
	bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
	fromEnvironment := "set the environment variable " + tokenVariable + " to a token of the server"
	return []agent{
		{name: "claude", title: "Claude Desktop", table: "mcpServers",
			file: "claude_desktop_config.json (Settings > Developer > Edit Config)"},
		{name: "claude-code", title: "Claude Code", table: "mcpServers", typed: true,
			file: ".mcp.json in the project's folder",
			address: func(url string) entry {
				return entry{Type: "http", URL: url, Headers: bearer("${" + tokenVariable + "}")}
			},
			token: fromEnvironment},
		{name: "codex", title: "Codex", table: "mcp_servers", isTOML: true,
			file:    "~/.codex/config.toml",
			address: func(url string) entry { return entry{URL: url, bearerVariable: tokenVariable} },
			token:   fromEnvironment},
		{name: "cursor", title: "Cursor", table: "mcpServers",
			file: "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
			address: func(url string) entry {
				return entry{URL: url, Headers: bearer("${env:" + tokenVariable + "}")}
			},
			token: fromEnvironment},
		{name: "gemini", title: "Gemini CLI", table: "mcpServers",
			file: "~/.gemini/settings.json, or .gemini/settings.json in the project's folder",
			address: func(url string) entry {
				return entry{HTTPURL: url, Headers: bearer("${" + tokenVariable + "}")}
			},
			token: fromEnvironment},
		{name: "vscode", title: "VS Code", table: "servers", typed: true,
			file: ".vscode/mcp.json in the workspace, or what the command \"MCP: Open User Configuration\" opens",
			address: func(url string) entry {
				return entry{Type: "http", URL: url, Headers: bearer("${input:toolsrv-token}")}
			},
			token:  "VS Code asks for the token when it starts the server",
			inputs: []input{{Type: "promptString", ID: "toolsrv-token", Description: "Token of toolsrv", Password: true}}},
		{name: "windsurf", title: "Windsurf", table: "mcpServers",
			file: "~/.codeium/windsurf/mcp_config.json",
			address: func(url string) entry {
				return entry{ServerURL: url, Headers: bearer("${env:" + tokenVariable + "}")}
			},
			token: fromEnvironment},
		{name: "zed", title: "Zed", table: "context_servers",
			file: "the settings file that the action \"zed: open settings file\" opens",
			address: func(url string) entry {
				return entry{URL: url, Headers: bearer(tokenVariable)}
			},
			token: "replace " + tokenVariable + " with a token of the server"},
	}
}

// clientNames returns the names of all clients.
func clientNames() []string {
	var names []string
	for _, c := range clients() {
		names = append(names, c.name)
	}
	return names
}

// command returns the entry of a server that the client starts.
func (c *agent) command(argv []string) entry {
	e := entry{Command: argv[0], Args: argv[1:]}
	if c.typed {
		e.Type = "stdio"
	}
	return e
}

// settings returns the client's settings for a server of this name.
func (c *agent) settings(name string, e entry) ([]byte, error) {
	for _, s := range append([]string{name, e.Command}, e.Args...) {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("%q is not valid UTF-8, so no settings file can name it: rename it", s)
		}
	}
	if c.isTOML {
		return c.toml(name, e)
	}
	all := []member{{c.table, object{{name, e}}}}
	if c.inputs != nil && e.Headers != nil {
		all = append(all, member{"inputs", c.inputs})
	}
	var b bytes.Buffer
	err := printJSON(&b, object(all))
	return b.Bytes(), err
}

// toml returns the settings of a client that uses TOML. Strings are written as in JSON.
func (c *agent) toml(name string, e entry) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "[%s.%s]\n", c.table, name)
	line := func(key, value string) error {
		text, err := unescapedJSON(value)
		fmt.Fprintf(&b, "%s = %s\n", key, text)
		return err
	}
	if e.URL != "" {
		err := errors.Join(line("url", e.URL), line("bearer_token_env_var", e.bearerVariable))
		return b.Bytes(), err
	}
	if err := line("command", e.Command); err != nil {
		return nil, err
	}
	args := make([]string, len(e.Args))
	for i, arg := range e.Args {
		var err error
		if args[i], err = unescapedJSON(arg); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(&b, "args = [%s]\n", strings.Join(args, ", "))
	return b.Bytes(), nil
}

// unescapedJSON returns a value as JSON on one line, in which < and & are not escaped.
func unescapedJSON(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// An object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		key, err := unescapedJSON(m.key)
		if err != nil {
			return nil, err
		}
		value, err := unescapedJSON(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(key + ":" + value)
	}
	return fmt.Appendf(nil, "{%s}", b.Bytes()), nil
}

// checkServerName returns nil if a client's settings can give a server this name, and otherwise why they can't. Some clients use the name in the
// names of tools. In TOML, a valid name needs no quotes.
func checkServerName(name string) error {
	const most = 32
	if name == "" || len(name) > most || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return fmt.Errorf("%q is not a valid name: use up to %d letters, digits, _ and -", name, most)
	}
	return nil
}

// serverAddress returns the address of a server over HTTP. If it has no path, the path of MCP is added.
func serverAddress(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("it is not an address such as https://tools.example.com/mcp")
	}
	if u.User != nil {
		return "", errors.New("it contains a user or a password: clients send a token instead")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	return u.String(), nil
}
