package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/certificate"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/origin"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// These are the ranges of values, in addition to the ranges in package limits.
const (
	maxText        = 200      // bytes of a title or a version
	maxDescription = 64 << 10 // bytes
	maxReason      = 1000     // bytes
	maxURL         = 2000     // bytes
	maxOverrides   = 1000
	maxAddresses   = 16
	defaultModules = 10_000
	maxModules     = 100_000
	defaultCounted = 1000 // tools with their own figures
	maxCounted     = 10_000
	minMemory      = 16 << 20 // bytes for all tools
	maxMemory      = 1 << 40
)

// fewPatterns says how to do with fewer tables that match tools.
const fewPatterns = `use patterns such as "math/*"`

// These are the modes of [tools].
const denylist, allowlist = "denylist", "allowlist"

// searches say when MCP clients search for tools; the first is the default.
var searches = [...]string{"auto", "never", "always"}

// proxyHeaders are the headers in which proxies name the client; the first is the default.
var proxyHeaders = [...]string{"X-Forwarded-For", "Forwarded"}

// tables returns the readers of all keys except in [[override]] and [[grant]], by the names of their tables.
func tables(c *Config, l *limits.Limits, which *string, directory string) map[string]key.Table {
	memory := func(to *int64) keys.Reader {
		return keys.ZeroOr(to, keys.Quantity(limittable.Bytes, minMemory, maxMemory, func(n int64) { *to = n }))
	}
	return map[string]key.Table{
		"": {
			// title of the OpenAPI document
			"title": keys.Word(&c.Title, "a string", prose(1, maxText)),
			// version of the OpenAPI document
			"version": keys.Word(&c.Version, "a string", prose(1, maxText)),
			// description of the OpenAPI document, and the instructions of MCP
			"description": keys.Word(&c.Description, "a string", prose(0, maxDescription)),
		},
		"server": {
			// host:port, `unix:` and a path, or a list of up to 16 | where to listen; port 0 is any free port, and an empty host is all addresses. See
			// [Sockets](#sockets)
			"address": addresses(&c.Server.Addresses, directory),
			// an address or a path | where clients reach the server behind a proxy: `"https://example.com/tools"`, or `"/tools"` on any host. The proxy
			// must remove the prefix
			"public_url": keys.Word(&c.Server.PublicURL, `an address such as "https://example.com/tools"`, publicURL),
			// names, patterns and addresses | [hosts](#hosts-and-origins) that requests may name, with any port
			"hosts": keys.Words(&c.Server.Hosts, origin.CheckPattern),
			// origins, or `"*"` | [pages of other origins](#hosts-and-origins) that may call tools from a browser
			"cors_origins": keys.Words(&c.Server.CORSOrigins, origin.CheckOrigin),
			// ranges of addresses | [proxies](#proxies) in front of the server
			"trusted_proxies": keys.List(`a list such as ["10.0.0.0/8"]`, keys.Prefix(&c.Server.TrustedProxies)),
			// the header in which `trusted_proxies` say who the client is
			"proxy_header": keys.Word(&c.Server.ProxyHeader, "a string", proxyHeader),
			// [memory](operations.md#memory) for all tools together; 0 is half of what the process has: the limit of its control group, or else the
			// machine's memory
			"memory": memory(&c.Server.Memory),
			// memory for [compiled code](operations.md#compiled-code), in addition to `memory`; 0 is an eighth of what the process has, at most 1
			// GiB. When it is full, the code that was called least is dropped, unless there is no cache directory
			"code_memory": memory(&c.Server.CodeMemory),
		},
		"server.tls": {
			// the server's certificate and those of its authorities, PEM. See [TLS](#tls)
			"certificate": keys.Word(&c.Server.TLS.Certificate, "a path", keys.Path(directory, false)),
			// the key of the server's certificate
			"key": keys.Word(&c.Server.TLS.Key, "a path", keys.Path(directory, false)),
			// certificates of those who may issue clients' certificates
			"client_ca": keys.Word(&c.Server.TLS.ClientCA, "a path", keys.Path(directory, false)),
		},
		"tools": {
			// folder of the `.wasm` files. Where there are [`[[source]]`](#several-directories), it is used only if it is set
			"directory": keys.Word(&c.Tools.Directory, "a path", keys.Path(directory, true)),
			// serve [scripts](#scripts) of the directory, too
			"scripts": keys.Boolean(&c.Tools.Scripts),
			// how many files are served; the log names those beyond; 0 is 10000
			"modules": keys.Quantity(limittable.Count, 0, maxModules, func(n int64) { c.Tools.Modules = cmp.Or(int(n), defaultModules) }),
			// [fuel](#limits) of a file without an embedded manifest to say which tools it has; 0 is 10 billion, some 5 s of a processor. Its start may
			// use as much again, and at least a billion
			"describe_fuel": keys.Quantity(limittable.Count, 0, math.MaxInt64, func(n int64) { c.Tools.DescribeFuel = n }),
			// [which](#which-tools-start-enabled) of the two lists applies
			"mode": keys.Word(which, "a string", mode),
			// tools and namespaces | allowlist: these start enabled, all others disabled
			"enabled": keys.Words(&c.Tools.Enabled, toolOrNamespace),
			// tools and namespaces, with or without a reason | denylist: these start disabled, all others enabled
			"disabled": disabled(&c.Tools),
			// where [compiled code](operations.md#compiled-code) is kept; `""` is `toolsrv` in the user's cache directory (`~/.cache/toolsrv` on Linux)
			"cache_directory": keys.Word(&c.Tools.CacheDir, "a path", keys.Path(directory, false)),
		},
		"auth": {
			// see [Auth](#auth) | bearer tokens that let a client in
			"tokens": unnamed(keys.Words(&c.Auth.Tokens, token)),
			// file with more tokens, one per line
			"tokens_file": keys.Word(&c.Auth.TokensFile, "a path", keys.Path(directory, false)),
			// while there is no token, refuse everybody instead of letting everybody in
			"required": keys.Boolean(&c.Auth.Required),
		},
		"auth.oidc": oidcTable(&c.Auth.OIDC),
		"mcp": {
			// answer [MCP](mcp.md) clients at `/mcp`
			"enabled": keys.Boolean(&c.MCP.Enabled),
			// when MCP clients [search](mcp.md#many-tools) instead of getting one list of all tools; `"auto"` means when there are more than 200
			"search": keys.Word(&c.MCP.Search, "a string", search),
		},
		"admin": {
			// [administration over HTTP](administration.md#over-http), at `/admin/v1`; `"auto"` means while there are tokens with names
			"enabled": func(value any) error {
				if value == "auto" {
					return nil
				}
				on, ok := value.(bool)
				if !ok {
					return keys.WrongType(value, `true, false or "auto"`)
				}
				c.Admin.Enabled, c.Admin.Disabled = on, !on
				return nil
			},
			// Unix socket for [administration](administration.md) on the machine; `""` is `admin.sock` in the directory of the state, `"none"` is no
			// socket. Nobody else may write to its folder
			"socket": keys.Word(&c.Admin.Socket, `a path, or "none"`, socket(directory)),
			// administrators may [put](administration.md#put-and-remove) files into the tools directories, and remove them
			"upload": keys.Boolean(&c.Admin.Upload),
		},
		"metrics": {
			// [metrics](operations.md#metrics) at `/metrics`, in Prometheus' form
			"enabled": keys.Boolean(&c.Metrics.Enabled),
			// an address with a port | where anybody can read `/metrics` instead; `""` is the server's own addresses, with the role `metrics`
			"address": keys.Word(&c.Metrics.Address, `an address such as "127.0.0.1:9090"`, addressOrNone),
			// how many tools have figures of their own: the ones called most
			"tools": keys.Quantity(limittable.Count, 1, maxCounted, func(n int64) { c.Metrics.Tools = int(n) }),
			// count calls by caller, too
			"principals": keys.Boolean(&c.Metrics.Principals),
		},
		"console": {
			// [pages](http.md#pages-for-people) at `/`, `/docs` and `/console`
			"enabled": keys.Boolean(&c.Console.Enabled),
		},
		"events": {
			// tell clients of changes of the tools at [`/events`](http.md#events)
			"enabled": keys.Boolean(&c.Events.Enabled),
		},
		"otlp": otlpTable(&c.OTLP),
		"audit": {
			// operators can change something only while its entry in the [audit](administration.md#audit) can be kept
			"strict": keys.Boolean(&c.Audit.Strict),
		},
		"rates":   {},
		"limits":  limitsTable(l),
		"secrets": secretsTable(&c.Secrets, directory),
		"state":   stateTable(&c.State, directory),
	}
}

// limitsTable returns the readers of the keys that [limits] and [[override]] have in common.
func limitsTable(l *limits.Limits) key.Table {
	t, all := key.Table{}, limittable.All()
	for i := range all {
		e := &all[i]
		t[e.Key] = keys.Quantity(e.Unit, e.Least, e.Most, func(n int64) { e.Set(l, n) })
	}
	return t
}

// read returns the values of the text, with defaults for missing keys.
func (d *document) read(directory string, more []capability.Kind) (*Config, error) {
	values, err := d.parse()
	if err != nil {
		return nil, err
	}
	c := Default()
	c.Capabilities = slices.Clone(more)
	if err := builtin.CheckOwn(more); err != nil {
		return nil, err
	}
	c.Tools.Directory = keys.InDirectory(directory, c.Tools.Directory)
	var set limits.Limits
	var which string
	d.known = tables(c, &set, &which, directory)
	top := d.known[""]
	for name, t := range d.known {
		if outer, inner, nested := strings.Cut(name, "."); nested {
			d.known[outer][inner] = d.table(name, t)
		} else if name != "" {
			top[name] = d.table(name, t)
		}
	}
	// `rate`, `burst`, `concurrent` | how many calls each caller without a [rate](#rates) of its own may make
	d.known["rates"]["default"] = d.table("rates.default", rateKeys(key.Table{}, &c.Rates.Default))
	// `rate`, `burst`, `concurrent` | how many calls each address may make while nobody needs a token
	d.known["rates"]["anonymous"] = d.table("rates.anonymous", rateKeys(key.Table{}, &c.Rates.Anonymous))
	d.known["auth"]["token"] = d.tokens(&c.Auth.Declared, directory)
	d.known["auth"]["certificate"] = ruleTables(d, "auth.certificate", certificate.Claims(), &c.Auth.Certificates)
	d.known["auth.oidc"]["rule"] = ruleTables(d, "auth.oidc.rule", nil, &c.Auth.OIDC.Rules)
	top["override"] = d.overrides(&c.Overrides)
	top["source"] = sourceTables(d, &c.Sources, directory)
	top["pin"] = pinTables(d, &c.Pins)
	top["grant"] = d.grants(&c.Grants, builtin.With(c.Capabilities), directory, "")
	d.readTable("", values, top)

	if _, ok := d.offsets["tools.directory"]; !ok && len(c.Sources) > 0 {
		c.Tools.Directory = "" // the default is only for a configuration without other sources
	}
	checkSources(d, c)
	if which == "" && len(c.Tools.Enabled) > 0 && !d.refused("tools.mode") {
		d.fail("tools.enabled", errors.New(`the list has no effect without mode = "allowlist": set mode, too`))
	}
	if t := c.Server.TLS; ((t.Certificate == "") != (t.Key == "") || t.Certificate == "" && t.ClientCA != "") && !d.refused("server.tls.certificate", "server.tls.key") {
		d.fail("server.tls", errors.New("certificate and key belong together: name both files"))
	}
	checkOIDC(d, &c.Auth.OIDC)
	checkOTLP(d, &c.OTLP)
	checkState(d, &c.State)
	checkRate(d, "rates.default", &c.Rates.Default)
	checkRate(d, "rates.anonymous", &c.Rates.Anonymous)
	if len(c.Auth.Certificates) > 0 && c.Server.TLS.ClientCA == "" && !d.refused("server.tls.client_ca") {
		d.fail("auth.certificate", errors.New("needs server.tls.client_ca: name the file with the authorities that issue clients' certificates"))
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	c.Tools.Allowlist = which == allowlist
	d.noteLines(&c.Secrets)
	list, entries := "tools.disabled", len(c.Tools.Disabled)
	if c.Tools.Allowlist {
		list, entries = "tools.enabled", len(c.Tools.Enabled)
	}
	for i := range entries {
		c.Tools.Lines = append(c.Tools.Lines, d.line(d.offsets[index(list, i)]))
	}
	c.Limits = limittable.Over(set, c.Limits)
	return c, nil
}

// table reads a table such as [server].
func (d *document) table(name string, t key.Table) keys.Reader {
	return func(value any) error {
		values, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("must be a table: write [%s] above its keys", name)
		}
		d.readTable(name, values, t)
		return nil
	}
}

// overrides reads the tables [[override]].
func (d *document) overrides(to *[]Override) keys.Reader {
	return tableList(d, "override", maxOverrides, fewPatterns, to, func(place string, values map[string]any, o *Override) {
		t := limitsTable(&o.Limits)
		// a [pattern](#limits-for-some-tools) | the tools whose limits it changes
		t["match"] = keys.Word(&o.Match, `a pattern such as "math/*"`, keys.Pattern)
		d.readTable(place, values, t)
		if _, ok := values["match"]; !ok {
			d.fail(place, errors.New(`match is missing: name the tools, as in match = "math/*"`))
		}
	})
}
