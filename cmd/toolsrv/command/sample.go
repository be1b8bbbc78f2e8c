package command

import (
	"bytes"
	"encoding/json"
	"net"
	"slices"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// maxSample is how many bytes of arguments a command that people copy may have.
const maxSample = 1000

// callLine returns a shell command that calls a tool on a server. If calls need a token, the command takes it from the variable TOKEN.
func callLine(server string, t *wasmtools.Tool, needsToken bool) string {
	auth := ""
	if needsToken {
		auth = ` -H "Authorization: Bearer $TOKEN"`
	}
	return "curl -s " + server + t.Path() + auth + " -H 'Content-Type: application/json' -d " + text.ShellQuote(sampleArguments(t))
}

// callServer returns the arguments with which curl, on this machine, reaches the listener of a server with this configuration.
func callServer(c *config.Config, listener net.Addr) string {
	switch {
	case listener.Network() == "unix":
		return "--unix-socket " + text.ShellQuote(listener.String()) + " http://localhost"
	case c.Server.TLS.Certificate != "":
		return "https://" + callAddress(listener)
	}
	return callAddress(listener)
}

// callAddress returns the address at which a program on this machine reaches a listener.
func callAddress(listener net.Addr) string {
	host, port, err := net.SplitHostPort(listener.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() && !ip.IsUnspecified() {
		return listener.String()
	}
	return net.JoinHostPort("localhost", port)
}

// sampleArguments returns arguments to try a tool with, on one line: those of its first example, or else a guess from its schema. Values in the
// schema that are long or have hidden characters are not used.
func sampleArguments(t *wasmtools.Tool) string {
	if len(t.Examples) > 0 {
		if line, ok := sampleLine(t.Examples[0].Arguments); ok {
			return line
		}
	}
	if line, ok := sampleLine(guess(t.Parameters.JSON())); ok {
		return line
	}
	return "{}"
}

// sampleLine returns JSON in one line, if it is short enough.
func sampleLine(arguments []byte) (string, bool) {
	var line bytes.Buffer
	if len(arguments) > 10*maxSample || json.Compact(&line, arguments) != nil || line.Len() > maxSample {
		return "", false
	}
	return string(escapeJSON(line.Bytes())), true
}

// guess returns arguments that a schema may accept, or nothing.
func guess(parameters []byte) []byte {
	var schema struct {
		Required   []string
		Properties map[string]struct {
			Type           any
			Const, Default json.RawMessage
			Enum, Examples []json.RawMessage
			Minimum        json.RawMessage
		}
	}
	if json.Unmarshal(parameters, &schema) != nil {
		return nil
	}
	arguments := map[string]json.RawMessage{}
	for _, name := range schema.Required {
		p := schema.Properties[name]
		values := slices.Concat([]json.RawMessage{p.Const, p.Default}, p.Enum, p.Examples, []json.RawMessage{p.Minimum})
		switch p.Type {
		case "string":
			values = append(values, json.RawMessage(`"text"`))
		case "boolean":
			values = append(values, json.RawMessage(`true`))
		case "array":
			values = append(values, json.RawMessage(`[]`))
		case "object":
			values = append(values, json.RawMessage(`{}`))
		}
		values = append(values, json.RawMessage(`1`))
		arguments[name] = values[slices.IndexFunc(values, func(v json.RawMessage) bool { return v != nil })]
	}
	guessed, err := json.Marshal(arguments)
	if err != nil {
		return nil
	}
	return guessed
}
