package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/textfile"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		// Keys.
		{"a string without quotes", "title = Tools", `configuration:1:9: unexpected character U+0054 'T' at start of value: strings must be quoted`},
		{"unknown at the top", "titel = 'x'", `configuration:1:1: unknown key "titel": did you mean "title"?`},
		{"unknown in a table", "[tools]\n\n  modes = 1", `configuration:3:3: unknown key "modes" in [tools]: did you mean "mode"?`},
		{"unknown, two swapped", "limits.tiemout = 1", `unknown key "tiemout" in [limits]: did you mean "timeout"?`},
		{"unknown, other case", "[limits]\nlog-Lines = 1", `unknown key "log-Lines" in [limits]: did you mean "log_lines"?`},
		{"unknown table", "[limit]\nqueue = 1", `configuration:1:2: unknown key "limit": did you mean "limits"?`},
		{"unknown, nothing near", "[server]\nport = 1", `unknown key in [server]: remove it, or update toolsrv if a newer one has it: the keys are address`},
		{"in the wrong table", "timeout = '5s'", `unknown key "timeout": it belongs in [limits]`},
		{"below a table", "[auth]\ntitle = 'x'", `unknown key "title" in [auth]: it belongs above the first table`},
		{"in an override", "[[override]]\nmatch = 'a'\n[[override]]\nmatch = 'b'\nmemroy = 1", `configuration:5:1: unknown key "memroy" in [[override]]: did you mean "memory"?`},
		{"in a source", "[[source]]\ndirectory = 'a'\nscript = true", `configuration:3:1: unknown key "script" in [[source]]: did you mean "scripts"?`},
		{"a source without a directory", "[[source]]\nscripts = true", `configuration:1:3: source[0]: directory, oci or bucket is missing`},
		{"a source with an empty directory", "[[source]]\ndirectory = ''", `configuration:2:1: source[0].directory: must not be empty`},
		{"a source as a table", "[source]\ndirectory = 'a'", `configuration:1:2: source: each source is a table of its own`},
		{"a source twice", "[[source]]\ndirectory = 'a'\n[[source]]\ndirectory = './a'", `configuration:4:1: source[1].directory: is listed twice`},
		{"the tools directory as a source", "[tools]\ndirectory = 'a'\n[[source]]\ndirectory = 'a'", `configuration:4:1: source[0].directory: is listed twice`},
		{"a collector elsewhere without TLS", "[otlp]\nendpoint = 'http://collector.example:4318'", `configuration:2:1: otlp.endpoint: must begin with https://, since it is on another machine`},
		{"a collector with a password", "[otlp]\nendpoint = 'https://user:hunter2@collector.example'", `configuration:2:1: otlp.endpoint: is not the address of a collector`},
		{"a collector with a key", "[otlp]\nendpoint = 'https://collector.example?key=hunter2'", `otlp.endpoint: is not the address of a collector: use one such as "https://collector.example:4318", and put keys into headers`},
		{"a collector that is not an address", "[otlp]\nendpoint = 'collector:4318'", `otlp.endpoint: is not the address of a collector`},
		{"a collector at an impossible port", "[otlp]\nendpoint = 'http://localhost:99999999'", `otlp.endpoint: is not the address of a collector`},
		{"a collector at port 0", "[otlp]\nendpoint = 'http://localhost:0'", `otlp.endpoint: is not the address of a collector`},
		{"a collector at a path of Windows", "[otlp]\nendpoint = 'http://127.0.0.1:1/\\x'", `otlp.endpoint: is not the address of a collector`},
		{"a collector's header that is HTTP's own", "[otlp]\nheaders = {Content-Length = '1'}", `configuration:2:12: otlp.headers: is not the name of a header that can be set`},
		{"a collector's header with two lines", "[otlp]\nheaders = {Key = \"a\\nb\"}", `is not a valid value for a header`},
		{"a collector's header with a variable", "[otlp]\nheaders = {Key = '${env:KEY}'}", `otlp.headers: ${ must be followed by secret:, a name and }`},
		{"a fraction above 1", "[otlp]\nsample = 1.5", `configuration:2:1: otlp.sample: must be a number from 0 to 1`},
		{"a fraction below 0", "[otlp]\nsample = -1", `otlp.sample: must be a number from 0 to 1`},
		{"a fraction that is not a number", "[otlp]\nsample = nan", `otlp.sample: must be a number from 0 to 1`},
		{"a fraction as a string", "[otlp]\nsample = '1%'", `otlp.sample: must be a number from 0 to 1`},
		{"a collector that may take too long", "[otlp]\ntimeout = '2h'", `otlp.timeout: `},
		{"in an inline table", "limits = {queue = 1,   memroy = 2}", `configuration:1:24: unknown key "memroy" in [limits]`},
		{"table in an override", "[[override]]\nmatch='a'\n[override.x]\ny = 1", `configuration:3:2: unknown key in [[override]]`},
		{"quoted key with a point", "\"server.address\" = 1", `configuration:1:1: unknown key: remove it, or update toolsrv if a newer one has it: the keys are`},
		{"empty key", "\"\" = 1", `configuration:1:1: unknown key: remove it, or update toolsrv if a newer one has it: the keys are`},
		{"long key", strings.Repeat("k", 100) + " = 1", `configuration:1:1: unknown key: remove it, or update toolsrv if a newer one has it: the keys are`},
		{"duplicate", "title = 'a'\ntitle = 'b'", `configuration:2:1: `},
		{"duplicate table", "[auth]\n[tools]\n[auth]", `configuration:3:2: `},

		// Syntax.
		{"no value", "title =\n", `configuration:1:8: `},
		{"no quotes", "[limits]\ntimeout = 5s", `configuration:2:`},
		{"open string", "title = \"x\nversion = 'y'", `configuration:1:`},
		{"wrong text", "title = '\xff'", `configuration:1:`},
		{"null", "\x00", `configuration:1:1: a null character`},

		// Types.
		{"table wanted", "server = 8000", `configuration:1:1: server: must be a table: write [server] above its keys`},
		{"array of tables instead", "[[limits]]\nqueue = 1", `limits: must be a table: write [limits]`},
		{"override as a table", "[override]\nmatch = 'a'", `configuration:1:2: override: each override is a table of its own: write [[override]] above its keys`},
		{"override of numbers", "override = [1]", `override[0]: each override is a table of its own`},
		{"string wanted", "title = 1", `title: must be a string, not a whole number`},
		{"boolean wanted", "auth.required = 'yes'", `auth.required: must be true or false, not a string`},
		{"list wanted", "tools.enabled = 'web'", `tools.enabled: must be a list such as ["one", "two"], not a string`},
		{"a string in place of the list of disabled tools", "tools.disabled = 'web'", `tools.disabled: must be a list such as ["web", {tool = "math/div", reason = "being repaired"}], not a string`},
		{"a number in place of a string in a list", "tools.enabled = ['web',\n\n  1]", `configuration:3:3: tools.enabled[1]: must be a string, not a whole number`},
		{"time wanted", "limits.timeout = 5", `limits.timeout: must be a time in quotes such as "200ms", "5s" or "1m30s", not a whole number`},
		{"size wanted", "limits.memory = 1.5", `limits.memory: must be a size such as "64MiB", or a number of bytes, not a fractional number`},
		{"number wanted", "limits.queue = 1979-05-27", `limits.queue: must be a whole number, not a date or time`},
		{"path wanted", "tools.directory = ['x']", `tools.directory: must be a path, not a list`},
		{"address wanted", "server.address = {}", `server.address: must be an address such as "127.0.0.1:8000", or a list of addresses, not a table`},
		{"pattern wanted", "[[override]]\nmatch = true", `configuration:2:1: override[0].match: must be a pattern such as "math/*", not true or false`},

		// Values.
		{"empty title", "title = ''", `title: must not be empty`},
		{"long title", "title = '" + strings.Repeat("x", 201) + "'", `title: has 201 bytes; at most 200 are allowed`},
		{"control character", `description = "a\u0007"`, `description: has a control character`},
		{"too many modules", "tools.modules = 100_001", `tools.modules: is out of range: 0 to 100000 is allowed`},
		{"empty directory", "tools.directory = ''", `tools.directory: must not be empty`},
		{"null in a path", `tools.cache_directory = "a\u0000"`, `tools.cache_directory: has a null character`},
		{"mode", "tools.mode = 'whitelist'", `configuration:1:1: tools.mode: is not a mode: use "denylist" or "allowlist"`},
		{"search", "mcp.search = 'all'", `configuration:1:1: mcp.search: is not known: use "auto", "never" or "always"`},
		{"list without its mode", "tools.enabled = ['a']", `tools.enabled: the list has no effect without mode = "allowlist"`},
		{"empty entry", "tools.disabled = ['a', '/']", `tools.disabled[1]: the entry is empty`},
		{"pattern as entry", "tools.disabled = ['math/*']", `tools.disabled[0]: has a *, which only match allows: name a namespace or a tool`},
		{"bad entry", "tools.disabled = ['a//b']", `tools.disabled[0]: has an empty part`},
		{"entry with a slash at its end", "tools.disabled = ['a/']", `tools.disabled[0]: has an empty part`},
		{"long name", "tools.disabled = ['a/" + strings.Repeat("b", 65) + "']", `has 65 bytes; a name has at most 64`},
		{"an entry that begins with two dots", "tools.disabled = ['../a']", `tools.disabled[0]: has a character that is not allowed in a name`},
		{"no address", "server.address = []", `server.address: the list is empty`},
		{"an address twice", "server.address = ['[::1]:80', '[::1]:80']", `server.address[1]: is listed twice`},
		{"too many addresses", "server.address = [" + strings.Repeat("'127.0.0.1:0',", 17) + "]", `server.address: there are 17 addresses; at most 16 are allowed`},
		{"a socket without a path", "server.address = 'unix:'", `server.address: is not the path of a socket`},
		{"an abstract socket", "server.address = ['unix:@toolsrv']", `server.address[0]: is not the path of a socket`},
		{"a certificate without a key", "[server.tls]\ncertificate = 'hunter2'", `server.tls: certificate and key belong together: name both files`},
		{"a key without a certificate", "[server.tls]\nkey = 'hunter2'", `server.tls: certificate and key belong together: name both files`},
		{"an authority without a certificate", "[server.tls]\nclient_ca = 'hunter2'", `server.tls: certificate and key belong together: name both files`},
		{"an unknown key of TLS", "[server.tls]\nca = 'hunter2'", `unknown key in [server.tls]: remove it, or update toolsrv if a newer one has it: the keys are certificate, client_ca, key`},
		{"TLS is not a table", "server.tls = 'hunter2'", `server.tls: must be a table: write [server.tls] above its keys`},
		{"address without port", "server.address = 'localhost'", `server.address: is not an address`},
		{"address with a scheme", "server.address = 'http://localhost:80'", `server.address: is not an address`},
		{"public URL without a scheme", "server.public_url = 'example.com/tools'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL of another scheme", "server.public_url = 'ftp://example.com'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL without a host", "server.public_url = 'https:///tools'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL of another host", "server.public_url = '//example.com'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL with a query", "server.public_url = 'https://example.com/?a=1'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL with a fragment", "server.public_url = '/tools#a'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL with a user", "server.public_url = 'https://me:secret@example.com'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL with a variable", "server.public_url = '/{tenant}'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL with a blank", "server.public_url = '/a b'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"public URL that is a word", "server.public_url = 'tools'", `is not an address: use one such as "https://example.com/tools", or a path such as "/tools"`},
		{"long public URL", "server.public_url = '/" + strings.Repeat("a", 2000) + "'", `is not an address`},
		{"unknown in the server", "[server]\nhost = ['a']", `configuration:2:1: unknown key "host" in [server]: did you mean "hosts"?`},
		{"origins under another name", "[server]\ncors_origin = ['a']", `configuration:2:1: unknown key "cors_origin" in [server]: did you mean "cors_origins"?`},
		{"hosts wanted", "server.hosts = 'example.com'", `server.hosts: must be a list such as ["one", "two"], not a string`},
		{"host with a scheme", "[server]\nhosts = ['a',\n'https://example.com']", `configuration:3:1: server.hosts[1]: has a scheme, but a host has none: leave it out, as in "tools.example.com"`},
		{"host with a port", "server.hosts = ['example.com:8000']", `server.hosts[0]: has a port, but a host is allowed on any port: leave it out`},
		{"host with a star in the middle", "server.hosts = ['a.*.com']", `server.hosts[0]: has a * that is not the whole first label of a name: use a pattern such as "*.example.com", or "*" for every host`},
		{"empty host", "server.hosts = ['']", `server.hosts[0]: the entry is empty: name a host such as "tools.example.com"`},
		{"origin without a scheme", "[server]\ncors_origins = ['example.com']", `configuration:2:17: server.cors_origins[0]: is not an origin: use a scheme and a host without a path, such as "https://app.example.com" or "http://localhost:3000"`},
		{"origin with a path", "server.cors_origins = ['https://example.com/']", `server.cors_origins[0]: is not an origin`},
		{"origin with a star for a label", "server.cors_origins = ['https://*.example.com']", `server.cors_origins[0]: has a *, but origins are compared as a whole: list each of them, or use just "*" for every origin`},
		{"origin null", "server.cors_origins = ['null']", `server.cors_origins[0]: is the origin of every page without one: name the pages' real origin`},
		{"IPv6 without brackets", "server.address = '::1:80'", `is not an address`},
		{"blank in the host", "server.address = 'local host:80'", `is not an address`},
		{"named port", "server.address = ':http'", `server.address: has no valid port`},
		{"port too large", "server.address = ':65536'", `has no valid port`},
		{"negative port", "server.address = ':-1'", `has no valid port`},
		{"no time", "limits.timeout = '5'", `limits.timeout: is not a time`},
		{"time too short", "limits.timeout = '999us'", `limits.timeout: is out of range: 1ms to 1h is allowed`},
		{"time too long", "limits.timeout = '61m'", `limits.timeout: is out of range`},
		{"negative time", "limits.timeout = '-5s'", `is out of range`},
		{"time without end", "limits.timeout = '99999999999h'", `is not a time`},
		{"memory too small", "limits.memory = 65535", `limits.memory: is out of range: 64KiB to 4GiB is allowed`},
		{"memory too large", "limits.memory = '5GiB'", `limits.memory: is out of range`},
		{"size without end", "limits.memory = '99999999999999999999999GiB'", `is out of range`},
		{"size that overflows", "limits.memory = '9223372036854775807GiB'", `is out of range`},
		{"size that wraps", "limits.memory = '17179869185GiB'", `is out of range`},
		{"negative size", "limits.memory = '-64MiB'", `limits.memory: is not a size`},
		{"negative number of bytes", "limits.memory = -1", `is out of range`},
		{"unit alone", "limits.memory = 'MiB'", `limits.memory: is not a size`},
		{"unknown unit", "limits.memory = '64M'", `limits.memory: is not a size: use a whole number with KiB, MiB, GiB, kB, MB, GB or B`},
		{"two units", "limits.memory = '64MiBB'", `is not a size`},
		{"blank in a size", "limits.memory = '64 MiB'", `is not a size`},
		{"fraction of a size", "limits.memory = '1.5GiB'", `is not a size`},
		{"empty size", "limits.memory = ''", `is not a size`},
		{"no input", "limits.input = 0", `limits.input: is out of range: 1B to 1GiB is allowed`},
		{"no output", "limits.output = '0KiB'", `limits.output: is out of range: 1B to 1GiB is allowed`},
		{"stack too small", "limits.stack = 1", `limits.stack: is out of range`},
		{"negative queue", "limits.queue = -1", `limits.queue: is out of range: 0 to 100000 is allowed`},
		{"concurrency too large", "limits.concurrency = 10001", `limits.concurrency: is out of range: 0 to 10000 is allowed`},
		{"negative fuel", "limits.fuel = -1", `limits.fuel: is out of range`},
		{"fuel too large", "limits.fuel = 9223372036854775808", `configuration:1:`},
		{"in an override", "[[override]]\nmatch='a'\n[[override]]\nmatch='b'\ntimeout='2h'", `configuration:5:1: override[1].timeout: is out of range`},
		{"override without match", "[[override]]\nmatch='a'\n[[override]]\ntimeout='2s'", `configuration:3:3: override[1]: match is missing`},
		{"empty match", "[[override]]\nmatch=''", `override[0].match: the pattern is empty`},
		{"slash match", "[[override]]\nmatch='/'", `override[0].match: the pattern is empty`},
		{"match with an empty name", "[[override]]\nmatch='a//b'", `override[0].match: has an empty part`},
		{"match with two stars after a letter", "[[override]]\nmatch='a/b**'", `has ** next to other characters`},
		{"match with three stars", "[[override]]\nmatch='***'", `has ** next to other characters`},
		{"match with a question mark", "[[override]]\nmatch='a/?'", `has a character that is not allowed in a name`},
		{"long match", "[[override]]\nmatch='" + strings.Repeat("a", 129) + "'", `the pattern has 129 bytes; at most 128 are allowed`},
		{"empty token", "[auth]\ntokens = ['a',\n'']", `configuration:3:1: auth.tokens[1]: the token is empty`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Parse([]byte(tt.text), "")
			if err == nil {
				t.Fatalf("got %+v, want an error", c)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

// Proves: Secrets stay secret
func TestTokensAreNotShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"auth.tokens = ['zq-secret zq']", "auth.tokens = 'zq-secret'", "auth.tokens = [['zq-secret']]",
		"auth.tokens = ['zq-secret\u00e9']", "auth.tokens = ['zq-secret" + strings.Repeat("x", 1024) + "']",
		"auth.required = 'zq-secret'", "[auth]\ntokens = ['zq-secret'", "[auth]\ntokens = [zq-secret]",
		"[auth]\ntokens = ['zq-secret', 'zq-secret' 'zq-secret']",
	} {
		_, err := config.Parse([]byte(text), "")
		if err == nil || strings.Contains(err.Error(), "zq-secret") {
			t.Errorf("%.40q: got %v, want an error without the token", text, err)
		}
	}
}

func TestAllErrorsInOrder(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte("titel = 1\n[limits]\nqueue = -1\ntimeout = 'x'\n[auth]\ntokens = ['']\n"), "")
	if err == nil {
		t.Fatal("got nil, want errors")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{"configuration:1:1: ", "configuration:3:1: ", "configuration:4:1: ", "configuration:6:11: "} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("got\n%s\nwant line %d to begin with %q", err, i+1, want)
		}
	}
}

func TestManyErrorsAreCutOff(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 25 {
		fmt.Fprintf(&text, "wrong_%d = 1\n", i)
	}
	_, err := config.Parse([]byte(text.String()), "")
	if err == nil {
		t.Fatal("got nil, want errors")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || lines[10] != "configuration: and 15 more" {
		t.Errorf("got %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestHostileText parses files that are filled with a single construct. None may cause a panic, or take much time or memory.
func TestHostileText(t *testing.T) {
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, textfile.Max/len(s)) }
	numbered := func(format string, size int) string {
		var b strings.Builder
		for i := 0; b.Len() < textfile.Max-size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	long := strings.Repeat("k", 60)
	tests := map[string]string{
		"deep key":            "a" + strings.Repeat(".a", textfile.Max/2-4) + "=1",
		"deep table":          "[a" + strings.Repeat(".a", textfile.Max/2-2) + "]",
		"nested lists":        "a=" + strings.Repeat("[", textfile.Max/2) + strings.Repeat("]", textfile.Max/2-2),
		"open lists":          "a=" + strings.Repeat("[", textfile.Max-2),
		"nested tables":       "a=" + strings.Repeat("{a=", textfile.Max/4-2) + "1" + strings.Repeat("}", textfile.Max/4-2),
		"tables in overrides": fill("[[override]]\n"),
		"overrides":           fill("[[override]]\nmatch='a'\n"),
		"keys":                numbered("k%d=1\n", 20),
		"keys in a table":     "[limits]\n" + numbered("k%d=1\n", 40),
		"tables":              numbered("[t%d]\n", 20),
		"dotted keys":         numbered("limits.k%d.x.y.z=1\n", 30),
		"keys of many parts":  numbered("limits.k%d"+strings.Repeat(".a", 90)+"=1\n", 300),
		"elements":            "tools.disabled=[" + strings.Repeat("'',", textfile.Max/3-10) + "]",
		"nested less":         "a=" + strings.Repeat("{a=", 5000) + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + strings.Repeat("}", 5000),
		"unknown keys":        numbered("%d=1\n", textfile.Max-1_000_000),
		"wrong entries":       "tools.disabled=[" + strings.Repeat("'',", 99_000) + "]",
		"elements far down":   "'" + long + "'" + strings.Repeat(".'"+long+"'", 14) + "=[" + strings.Repeat("1,", 500_000) + "]",
		"long string":         "title='" + strings.Repeat("x", textfile.Max-9) + "'",
		"long key":            strings.Repeat("x", textfile.Max-2) + "=1",
		"long number":         "limits.queue=" + strings.Repeat("9", textfile.Max-20),
		"comments":            fill("#\n"),
		"over the size":       fill("# 3456\n") + "# 3456\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := config.Parse([]byte(text), "")
			if name == "comments" {
				if err != nil {
					t.Errorf("got %v, want nil", err)
				}
			} else if err == nil {
				t.Error("got nil, want an error")
			} else if len(err.Error()) > 4000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
		})
	}
}

// FuzzParse looks for text that causes a panic, an error without its place, or a Config that is out of range.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "title = 'x'", "[limits]\ntimeout = '5s'\nmemory = '64MiB'", "[[override]]\nmatch = 'math/*'\nfuel = 0",
		"tools.disabled = ['web', '/math/div']", "limits = {queue = 1}", "a.b.c = [[[{}]]]", "[a]\n[[a.b]]\n[a.b.c]",
		"title = \"\"\"\n\\u00e9\"\"\"", "x = 1979-05-27T07:32:00Z", "\"\" = nan", "[[override]]\n[[override.x]]\ny = 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Parse([]byte(text), "dir")
		if err != nil {
			if c != nil || !strings.HasPrefix(err.Error(), "configuration:") {
				t.Errorf("got %v, %q", c, err)
			}
			return
		}
		for _, path := range []string{"", "/", "/math/add", "/a/b/c"} {
			l := configured.Limits(c, path)
			if l.Timeout < time.Millisecond || l.Timeout > time.Hour || l.Memory < 1<<16 || l.Memory > 1<<32 || l.Fuel < 0 ||
				l.Stack < 1 || l.Input < 1 || l.Output < 1 || l.Concurrency < 0 || l.Queue == 0 || l.LogLines == 0 {
				t.Errorf("%q: got %+v", path, l)
			}
		}
	})
}

// TestOneErrorForAValue refuses values that other keys need. There must be no second error that says that such a value is missing.
func TestOneErrorForAValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a state with a bucket":        {"[state]\nurl = 'a'\n[[source]]\nbucket = 'a'\nnamespaces = ['a']", "configuration:2:1: state.url: must begin with nats:// or tls://"},
		"a state with credentials":     {"[state]\nurl = 'a'\ncredentials = 'a'", "configuration:2:1: state.url: must begin with nats:// or tls://"},
		"a state's key":                {"[state]\nurl = 'nats://a'\ncertificate = 'a'\nkey = 5", "configuration:4:1: state.key: must be a path, not a whole number"},
		"a certificate":                {"[server.tls]\ncertificate = 5\nkey = 'k'", "configuration:2:1: server.tls.certificate: must be a path, not a whole number"},
		"who issues certificates":      {"[server.tls]\ncertificate = 'c'\nkey = 'k'\nclient_ca = 5\n[[auth.certificate]]\nclaim = 'dns'\nvalue = 'x'\nscopes = ['*']", "configuration:4:1: server.tls.client_ca: must be a path, not a whole number"},
		"the mode of a list":           {"[tools]\nmode = 5\nenabled = ['a']", "configuration:2:1: tools.mode: must be a string, not a whole number"},
		"an issuer":                    {"[auth.oidc]\nissuer = 5\naudience = ['a']", "configuration:2:1: auth.oidc.issuer: must be a string, not a whole number"},
		"an audience":                  {"[auth.oidc]\nissuer = 'https://a.example'\naudience = 5", `configuration:3:1: auth.oidc.audience: must be a list such as ["one", "two"], not a whole number`},
		"a bucket without a state":     {"[[source]]\nbucket = 'a'\nnamespaces = ['a']", "configuration:2:1: source[0].bucket: is in the NATS that has the state: also set url in [state]"},
		"a bucket with an empty state": {"[state]\nurl = ''\n[[source]]\nbucket = 'a'\nnamespaces = ['a']", "configuration:4:1: source[0].bucket: is in the NATS that has the state: also set url in [state]"},
	} {
		if _, err := config.Parse([]byte(c.text), ""); err == nil || err.Error() != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, c.want)
		}
	}
}
