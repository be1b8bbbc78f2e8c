// Package toolsrv_test checks the rules that no compiler checks: imports, homes of libraries, sizes of files, names
// that are promises.
package toolsrv_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/toolsrv/toolsrv"

// edges are the allowed imports between packages of this repository; tests may import anything. Imports only lead downwards, so that the reader of a
// package need not know anything above it.
var edges = map[string][]string{
	// Settings of Go's own memory, which hold for the whole process: only main programs may use them.
	"internal/heap": {},
	// Owners and modes of files; any program could use it.
	"internal/ownership": {},
	// What tests share.
	"internal/testkit": {},
	// Helpers for tests that run the snippets of pages.
	"internal/testkit/pagetest": {"internal/testkit"},
	// A collector for tests.
	"internal/testkit/otlptest": {},
	// Registries for tests.
	"internal/testkit/ocitest": {},
	// Certificate authorities for tests, and bundles that they have signed.
	"internal/testkit/sigstoretest": {},
	// Makes and checks signatures; uses no registry.
	"internal/signature": {"internal/text", "internal/textfile"},
	// Helpers for tests that run guests.
	"internal/testkit/sandboxtest": {"internal/runtime/sandbox", "internal/runtime/wasmbin", "internal/toolfile"},
	// Helpers for tests of stores.
	"internal/testkit/statetest": {"internal/state"},
	// Helpers for tests that call WASI as a guest does.
	"internal/testkit/wasitest": {"internal/testkit/hosttest", "internal/runtime/wasi", "internal/runtime/hostcall"},
	// Helpers for tests that play a guest.
	"internal/testkit/hosttest": {"runtime/hostabi", "internal/capability/hostset", "internal/runtime/hostcall"},
	// Helpers for tests that compile sources.
	"internal/testkit/projecttest": {"internal/author/project"},
	// Helpers for tests that need interpreters.
	"internal/testkit/enginetest": {"internal/testkit", "internal/script/engine"},
	// Modules for tests, byte by byte.
	"internal/testkit/wasmtest": {},
	// Hosts and origins of HTTP, whatever server checks them.
	"internal/origin": {"internal/text"},
	// Decides where a request may go; connects to nothing.
	"internal/reach": {},
	// URLs for tests of the package above.
	"internal/reach/reachtest": {},
	// Signs any text with keys from the state.
	"internal/signing": {"internal/state", "internal/trouble"},
	// Logs lasting problems of any kind.
	"internal/trouble": {},
	// Modules in registries; does not look at their tools.
	"internal/oci": {"internal/nothttp", "internal/reach", "internal/signature", "internal/text", "internal/textfile", "internal/tlsfiles", "internal/trickle"},
	// Cuts off answers that arrive over a network too slowly, whoever sends them.
	"internal/trickle": {},
	// A file of digests; asks no registry.
	"internal/lockfile": {"internal/oci", "internal/textfile", "internal/wholefile"},
	// Counts durations, whatever was measured.
	"internal/durations": {},
	// Paths of tools, and patterns that match such paths; only text.
	"internal/pattern": {"internal/text"},
	// What scopes allow, whatever token has them.
	"internal/scope": {"internal/pattern", "wasmtools"},
	// The names under which callers' private things are stored, whatever those things are.
	"internal/personal": {"wasmtools"},
	// The secrets that callers have set themselves, in the state.
	"internal/brought": {"internal/personal", "internal/secret", "internal/state", "internal/trouble"},
	// Tokens with names and scopes, in the state and declared.
	"internal/tokens": {"internal/personal", "internal/rates", "internal/credential", "internal/scope", "internal/state", "internal/trouble", "wasmtools", "wasmtools/auth", "internal/config"},
	// Makes foreign text safe in messages; any package may use it.
	"internal/text": {},
	// Limits child processes, whatever they do.
	"internal/apart": {},
	// Limits how many calls callers make, through any door and of any tool.
	"internal/rates": {"internal/state", "internal/text", "wasmtools"},
	// Shares a number of places fairly, whatever they are for.
	"internal/turns": {},
	// Limits progress reports, whoever listens.
	"internal/progress": {"internal/text"},
	// Writes a log, whoever logs.
	"internal/journal": {"internal/text"},
	// Tells a supervisor the state of a process, whatever the process serves.
	"internal/supervisor": {"internal/text"},
	// Writes files, whatever is in them.
	"internal/wholefile": {},
	// What model APIs accept; reads no tool file.
	"internal/modelapi": {"internal/text"},
	// Turns JSON into values; uses no schemas.
	"internal/jsontree": {},
	// The binary format alone; any program could use it.
	"internal/runtime/wasmbin": {"internal/text", "internal/runtime/internal/opcode"},
	// The names of opcodes.
	"internal/runtime/internal/opcode": {},
	// Bytes in, bytes out: runs nothing.
	"internal/runtime/instrument": {"internal/text", "internal/runtime/instrument/internal/weigh", "internal/runtime/wasmbin", "internal/runtime/internal/opcode"},
	// Predicts how much it takes to compile a function's body; reads no other part of a module.
	"internal/runtime/instrument/internal/weigh": {"internal/runtime/wasmbin", "internal/runtime/internal/opcode"},
	// Errors about servers that don't speak HTTP.
	"internal/nothttp": {},
	// Whether a file was changed.
	"internal/touched": {},
	// Counts scarce resources of the process, whoever uses them.
	"internal/runtime/account": {},
	// The memory of guests, in bytes and pages. All that it knows of WebAssembly is the size of a page.
	"internal/runtime/linmem": {},
	// One constant, which a build tag sets.
	"internal/runtime/sandbox/internal/paranoid": {},
	// The domain: programs that embed us depend on this, and on schemas for tools of Go functions.
	"wasmtools": {"internal/pattern", "internal/progress", "internal/text", "wasmtools/schema", "wasmtools/misfit", "internal/naming"},
	// Tools that are Go functions: for programs that embed us.
	"wasmtools/gotool": {"internal/typed", "wasmtools", "wasmtools/schema"},
	// JSON Schema: whether a value is valid, and if not, why, whatever the value is for.
	"internal/schemas": {"internal/text", "internal/jsontree", "wasmtools/misfit"},
	// The part of JSON Schema for tools that are Go functions, and for programs that read tools.
	"wasmtools/schema": {"internal/schemas"},
	// Valid names.
	"internal/naming": {"internal/text"},
	// Maps errors to the domain's errors.
	"internal/fault": {"internal/text", "wasmtools"},
	// Says in words which grants tools lack.
	"internal/lacking": {"internal/text", "wasmtools"},
	// The error for a value that does not fit its schema.
	"wasmtools/misfit": {"internal/text"},
	// Removes secrets from bytes, whoever the secrets belong to.
	"internal/redact": {},
	// Finds out who makes a request; refuses with the domain's error.
	"wasmtools/auth": {"wasmtools", "internal/credential"},
	// A file format. Of the parts that it configures, it uses only the table of limits and the list of capabilities.
	"internal/config": {"internal/lockfile", "internal/oci", "internal/signature", "wasmtools", "internal/rates", "internal/origin", "internal/pattern", "internal/scope", "internal/text", "runtime/limits", "wasmtools/capability", "internal/capability/builtin", "wasmtools/config/key", "internal/credential", "internal/keys", "internal/runtime/limittable", "internal/certificate", "internal/oidc", "internal/textfile", "internal/secret", "internal/naming"},
	// Turns one file into tools, in the same way for a server and for the author's commands.
	"internal/toolfile": {"wasmtools/capability/answer", "internal/jsontree", "internal/text", "internal/runtime/abi1", "internal/runtime/instrument", "runtime/limits", "internal/runtime/sandbox", "internal/runtime/wasmbin", "wasmtools", "wasmtools/capability", "internal/capability/builtin", "internal/capability/tools", "wasmtools/schema", "internal/capability/hostset", "internal/runtime/hostcall", "internal/manifest", "internal/runtime/limittable", "internal/invoker", "internal/capability/granted", "internal/schemas", "wasmtools/misfit", "internal/naming", "internal/lacking"},
	// Keys with values, whoever stores them.
	"internal/state":                {},
	"internal/state/local":          {"internal/durations", "internal/ownership", "internal/state", "internal/state/internal/watch", "internal/wholefile"},
	"internal/state/memory":         {"internal/state", "internal/state/internal/watch"},
	"internal/state/nats":           {"internal/durations", "internal/state", "internal/state/internal/watch", "internal/textfile", "internal/tlsfiles", "internal/trouble"},
	"internal/state/internal/watch": {"internal/state"},
	// Events about tools, for clients that listen; does not change tools.
	"internal/events": {
		"internal/audit",
		"internal/lacking",
		"internal/text",
		"internal/web",
		"wasmtools",
	},
	// The log of changes, whoever makes them.
	"internal/audit": {"internal/metrics/counters", "internal/state", "internal/text"},
	// A file on disk that says which of several files keeps the tool path that they share; reads no modules.
	"internal/catalog/internal/precedence": {"internal/state", "internal/text", "internal/wholefile"},
	// Chooses the bundler for a script by its language, and remembers scripts that were read before; runs nothing.
	"internal/script": {"internal/apart", "internal/text", "internal/touched", "internal/runtime/codecache", "internal/runtime/wasmbin", "internal/script/engine", "internal/script/javascript", "internal/script/python"},
	// Interpreters as files, of whatever language; runs nothing.
	"internal/script/engine": {"internal/text", "internal/runtime/wasmbin"},
	// Turns files into a bundle; runs none of them.
	"internal/script/python":     {"internal/text", "internal/script/engine"},
	"internal/script/javascript": {"internal/jsontree", "internal/text", "internal/script/engine", "internal/script/javascript/internal/comment", "internal/script/javascript/internal/token"},
	// Turns the comments in a source into schemas; sees no bundle.
	"internal/script/javascript/internal/comment": {"internal/script/javascript/internal/token"},
	// Splits a source into tokens.
	"internal/script/javascript/internal/token": {},
	// The texts of licences, which a command prints.
	"internal/licenses": {"internal/script/engine"},
	// Finds the texts of licences in the linked modules.
	"internal/licenses/internal/gather": {"internal/licenses", "internal/script/engine"},
	// Makes an engine from a linker's output.
	"internal/script/engine/internal/seal": {"internal/runtime/wasmbin", "internal/script/engine"},
	// Turns the files of a source into a route table.
	"internal/catalog": {"internal/state", "internal/durations", "runtime/limits", "wasmtools", "internal/toolfile", "internal/runtime/sandbox", "internal/runtime/wasmbin", "internal/catalog/internal/precedence", "internal/touched", "internal/trouble", "internal/lacking", "internal/text"},
	// The source that is a directory on disk.
	"internal/catalog/directory": {"internal/ownership", "internal/touched", "internal/catalog"},
	// The source that is a module in a registry.
	"internal/catalog/registry": {"internal/catalog", "internal/oci", "internal/ownership", "internal/wholefile"},
	// The source that is a bucket. The state has each file's name and digest, and the object store has its content. It shares the cache on disk.
	"internal/catalog/bucket": {"internal/catalog", "internal/catalog/registry", "internal/runtime/sandbox", "internal/state", "internal/text", "internal/upload", "internal/versions"},
	// The part of package web for programs that add doors.
	"wasmtools/web": {"internal/web", "wasmtools"},
	// Adapts the doors and observers of embedding programs to our own interfaces.
	"internal/door": {"internal/web", "wasmtools/web"},
	// What every HTTP door needs; imports no door.
	"internal/web": {"internal/credential", "internal/personal", "internal/rates", "internal/origin", "internal/text", "wasmtools", "wasmtools/auth", "wasmtools/misfit", "internal/naming", "internal/fault", "internal/trace"},
	// How programs call tools, and are told of calls.
	"wasmtools/invoke": {"wasmtools"},
	// The one way to call a tool, the same for all doors.
	"internal/invoker": {"internal/rates", "internal/turns", "wasmtools", "wasmtools/invoke", "internal/schemas", "wasmtools/misfit", "internal/lacking", "internal/fault"},
	// REST as an http.Handler, for programs that embed us.
	"wasmtools/openapi": {"internal/door", "internal/openapi", "internal/web", "wasmtools", "wasmtools/web"},
	// REST: sees tools, but no sandboxes, and uses schemas only to find out whether a result is a file.
	"internal/openapi": {"internal/text", "wasmtools", "wasmtools/invoke", "internal/web", "internal/invoker", "internal/follow", "internal/schemas"},
	// MCP over HTTP: reads messages, and leaves the answers to protocol.
	"internal/mcp": {"internal/signing", "internal/state", "internal/jsontree", "wasmtools", "internal/mcp/internal/protocol", "internal/mcp/internal/response", "internal/mcp/internal/rpc", "internal/mcp/session", "internal/mcp/toolset", "internal/web", "internal/naming"},
	// What MCP shows of tools, the same over every transport.
	"internal/mcp/toolset": {"internal/rates", "internal/jsontree", "internal/text", "wasmtools", "wasmtools/invoke", "wasmtools/schema", "internal/invoker", "internal/follow", "internal/schemas", "wasmtools/misfit", "internal/naming", "internal/fault"},
	// Messages, for every transport; knows nothing about tools.
	"internal/mcp/internal/rpc": {"internal/jsontree", "internal/text"},
	// The methods of MCP, the same over every transport.
	"internal/mcp/internal/protocol": {"wasmtools", "internal/mcp/internal/rpc", "internal/mcp/toolset", "internal/text", "internal/trace"},
	// Answers of MCP over HTTP, with and without sessions.
	"internal/mcp/internal/response": {"internal/mcp/internal/protocol", "internal/web"},
	// MCP with clients that keep a session: reads messages, as the door without sessions does.
	"internal/mcp/session": {"internal/signing", "internal/state", "internal/text", "wasmtools", "internal/mcp/internal/protocol", "internal/mcp/internal/response", "internal/mcp/internal/rpc", "internal/mcp/toolset", "internal/web", "internal/trace"},
	// The part of package core for programs that embed the server.
	"wasmtools/service": {"internal/config", "internal/core", "wasmtools", "wasmtools/config", "wasmtools/invoke"},
	// Versions of files in a folder, and which of them are served; uses no catalog.
	"internal/versions": {"internal/state", "internal/text", "internal/wholefile"},
	// Counts calls by tool, as an observer.
	"internal/metrics": {"internal/durations", "internal/fault", "internal/metrics/counters", "wasmtools", "wasmtools/invoke"},
	// The trace from W3C's headers, in contexts; uses no package that records it.
	"internal/trace": {},
	// Turns requests and calls into spans; is told of them as any observer is.
	"internal/otlp": {"internal/nothttp", "internal/credential", "internal/runtime/hostcall", "internal/text", "internal/trace", "internal/web", "wasmtools", "wasmtools/invoke"},
	// Counters with a bounded number of keys; pure.
	"internal/metrics/counters": {},
	// The slowest requests; hears of them in the same way as the log.
	"internal/slow": {"internal/personal", "internal/text", "internal/web", "wasmtools"},
	// Uploads that must not leave a directory; does not read the modules.
	"internal/upload": {"internal/text"},
	// Stores which tools operators have switched on or off, by whatever interface.
	"internal/switches": {"internal/pattern", "internal/state", "internal/text", "wasmtools"},
	// Everything below the doors, wired together; imports no door, and uses only the ids of requests, for the log.
	"internal/core": {"internal/signing", "internal/trouble", "internal/otlp", "internal/trace", "internal/events", "internal/metrics", "internal/recent", "internal/rates", "internal/audit", "internal/brought", "internal/tokens", "internal/runtime/account", "internal/runtime/sandbox", "wasmtools", "internal/capability/broker", "internal/catalog", "internal/catalog/bucket", "internal/catalog/directory", "internal/catalog/registry", "internal/oci", "internal/signature", "internal/config", "wasmtools/invoke", "internal/script", "internal/script/engine", "internal/secret", "internal/toolfile", "internal/state", "internal/state/local", "internal/state/memory", "internal/state/nats", "internal/configured", "runtime/limits", "internal/web", "internal/invoker", "internal/switches", "internal/versions"},
	// The operations on a running server, for HTTP, the socket and the command line; sees the server above only as an interface.
	"internal/admin": {"internal/turns", "internal/events", "internal/metrics", "internal/recent", "internal/rates", "internal/slow", "internal/brought", "internal/capability/kv", "internal/personal", "internal/secret", "internal/scope", "internal/tokens", "internal/audit", "internal/state", "internal/switches", "internal/lacking", "internal/text", "internal/typed", "internal/schemas", "internal/pattern", "internal/runtime/account", "internal/catalog", "internal/catalog/bucket", "internal/configured", "internal/core", "wasmtools", "internal/config", "wasmtools/misfit", "internal/admin/reach", "wasmtools/capability", "internal/upload", "internal/versions", "internal/runtime/sandbox"},
	// Computes what callers can reach through tools and their grants; pure.
	"internal/admin/reach": {"internal/capability/tools", "internal/personal", "wasmtools", "wasmtools/capability"},
	// The admin operations over HTTP.
	"internal/admin/door": {"internal/admin", "internal/web", "wasmtools"},
	// The socket for the admin operations, whatever they are.
	"internal/admin/socket": {"internal/listen", "internal/ownership", "wasmtools", "internal/config"},
	// The client for the admin operations.
	"internal/admin/client": {"internal/nothttp", "internal/admin", "internal/admin/door", "internal/admin/socket", "internal/text", "internal/trickle", "wasmtools", "wasmtools/misfit"},
	// Serves pages as files; sees no tools.
	"internal/console": {"internal/naming", "internal/web", "wasmtools"},
	// Copies libraries for the pages from packages of npm.
	"internal/console/internal/gather": {},
	// Listeners and doors over a service; sees tools, never files.
	"wasmtools/server": {"internal/credential", "internal/events", "internal/script/engine", "internal/origin", "internal/metrics", "internal/metrics/counters", "internal/personal", "internal/slow", "internal/audit", "internal/tokens", "internal/admin", "internal/admin/door", "internal/admin/socket", "internal/console", "internal/text", "internal/runtime/account", "wasmtools", "wasmtools/auth", "internal/config", "wasmtools/config", "internal/mcp", "internal/mcp/session", "internal/mcp/toolset", "wasmtools/service", "internal/toolfile", "wasmtools/web", "internal/configured", "internal/core", "internal/listen", "internal/certificate", "internal/claim", "internal/oidc", "internal/tlsfiles", "internal/door", "internal/openapi", "internal/web", "internal/state/local"},
	// The SDKs as files, which other packages write into projects.
	"internal/author/sdk": {},
	// Runs compilers, but never their output.
	"internal/author/project": {"internal/author/sdk", "internal/text", "internal/runtime/wasmbin", "wasmtools", "wasmtools/schema", "internal/script", "internal/toolfile", "internal/manifest"},
	// One file as a server would load it, without a server.
	"internal/author/workbench": {"internal/author/project", "runtime/limits", "wasmtools", "internal/capability/broker", "internal/config", "internal/script", "internal/toolfile", "wasmtools/capability", "internal/capability/builtin", "internal/configured", "internal/manifest", "internal/runtime/limittable", "internal/core", "internal/invoker"},
	// Every part has a command, so this imports nearly everything.
	"cmd/toolsrv/command": {"internal/nothttp", "internal/signature", "internal/events", "internal/rates", "internal/author/project", "internal/author/workbench", "internal/heap", "internal/journal", "internal/modelapi", "internal/oci", "internal/ownership", "internal/reach", "internal/supervisor", "internal/text", "internal/wholefile", "internal/runtime/compile", "runtime/limits", "internal/runtime/sandbox", "wasmtools", "wasmtools/capability", "internal/capability/broker", "internal/capability/builtin", "internal/capability/http", "internal/capability/secrets", "internal/catalog", "internal/config", "wasmtools/config", "internal/licenses", "internal/mcp", "internal/mcp/toolset", "internal/script", "internal/script/engine", "wasmtools/server", "wasmtools/service", "internal/toolfile", "internal/state/memory", "internal/configured", "internal/credential", "internal/keys", "internal/manifest", "internal/runtime/limittable", "internal/secret", "internal/core", "internal/listen", "internal/lockfile", "internal/web", "wasmtools/misfit", "internal/lacking", "internal/audit", "internal/admin", "internal/admin/client", "internal/admin/socket", "internal/naming", "internal/admin/reach", "internal/invoker"},
	// main.
	"cmd/toolsrv": {"cmd/toolsrv/command"},
	// What can be limited, as data: for packages that configure limits and packages that enforce them.
	"runtime/limits": {},
	// Runs guests; uses no HTTP, no configuration and no schemas.
	"internal/runtime/sandbox": {"internal/durations", "internal/jsontree", "runtime/limits", "internal/progress", "internal/text", "internal/turns", "internal/runtime/account", "internal/runtime/instrument", "internal/runtime/internal/convention", "internal/runtime/internal/foundry", "internal/runtime/linmem", "internal/runtime/sandbox/internal/paranoid", "internal/runtime/schedule", "internal/runtime/wasmbin", "internal/runtime/hostcall", "internal/runtime/limittable"},
	// The ways to call a module's tools, as values; runs nothing.
	"internal/runtime/internal/convention": {"internal/runtime/wasmbin", "internal/runtime/hostcall"},
	// Turns modules into machine code, and keeps that; runs nothing.
	"internal/runtime/internal/foundry": {"internal/durations", "internal/trouble", "internal/apart", "internal/runtime/account", "internal/runtime/codecache", "internal/runtime/compile", "internal/runtime/instrument", "internal/runtime/schedule", "internal/runtime/wasmbin"},
	// Turns a module into machine code in a separate process; imports no sandbox.
	"internal/runtime/compile": {"internal/apart", "internal/text"},
	// Keeps files whose bytes can be trusted; imports no compiler.
	"internal/runtime/codecache": {"internal/ownership"},
	// What host functions and the sandbox share about the run of a guest; imports neither.
	"internal/runtime/hostcall": {},
	// The part of package hostcall that functions of capabilities need.
	"runtime/hostabi": {"internal/runtime/hostcall"},
	// Keeps what is derived from each generation of a route table.
	"internal/follow": {"wasmtools"},
	// What tools were granted; imports neither the package that decides nor those that ask.
	"internal/capability/granted": {"internal/runtime/hostcall", "wasmtools"},
	// Turns functions of capabilities into the sandbox's.
	"internal/capability/hostset": {"internal/runtime/hostcall", "runtime/hostabi"},
	// One set of functions each. They don't know the sandbox.
	"internal/runtime/abi1": {"internal/runtime/wasi", "internal/runtime/hostcall"},
	"internal/runtime/wasi": {"internal/runtime/hostcall"},
	// What a capability is: a set of functions, and its part of manifests and configurations.
	"wasmtools/capability": {"runtime/hostabi", "wasmtools", "wasmtools/config/key", "wasmtools/invoke", "internal/secret", "internal/state", "internal/runtime/hostcall"},
	// How the functions of all capabilities answer a guest.
	"wasmtools/capability/answer": {"runtime/hostabi", "internal/runtime/hostcall"},
	// One capability each. They know neither the sandbox nor configuration files.
	"internal/capability/http":     {"internal/tlsfiles", "internal/personal", "internal/jsontree", "internal/reach", "internal/redact", "internal/text", "runtime/hostabi", "wasmtools", "wasmtools/capability", "wasmtools/capability/answer", "wasmtools/config/key", "internal/secret", "internal/runtime/hostcall", "internal/keys", "internal/runtime/limittable", "internal/trace"},
	"internal/capability/kv":       {"internal/personal", "internal/text", "runtime/hostabi", "wasmtools", "wasmtools/capability", "wasmtools/capability/answer", "wasmtools/config/key", "internal/state", "internal/keys", "internal/runtime/limittable"},
	"internal/capability/secrets":  {"runtime/hostabi", "wasmtools", "wasmtools/capability", "wasmtools/capability/answer", "wasmtools/config/key", "internal/secret", "internal/runtime/hostcall", "internal/keys"},
	"internal/capability/settings": {"runtime/hostabi", "wasmtools", "wasmtools/capability", "wasmtools/capability/answer", "wasmtools/config/key", "wasmtools/schema", "internal/runtime/hostcall", "internal/keys", "wasmtools/misfit"},
	"internal/capability/tools":    {"internal/rates", "internal/personal", "internal/pattern", "internal/text", "runtime/hostabi", "wasmtools", "wasmtools/capability", "wasmtools/capability/answer", "wasmtools/config/key", "wasmtools/invoke", "internal/runtime/hostcall", "internal/keys", "internal/invoker", "internal/naming", "internal/fault"},
	"internal/capability/files":    {"internal/runtime/wasi", "wasmtools", "wasmtools/capability", "wasmtools/config/key", "internal/keys"},
	// The one list of capabilities.
	"internal/capability/builtin": {"wasmtools", "wasmtools/capability", "internal/capability/files", "internal/capability/http", "internal/capability/kv", "internal/capability/secrets", "internal/capability/settings", "internal/capability/tools", "internal/manifest"},
	// Turns grants into the values that functions get.
	"internal/capability/broker": {"internal/pattern", "internal/text", "wasmtools", "wasmtools/capability", "internal/config", "internal/secret", "internal/state", "internal/runtime/hostcall", "internal/capability/builtin", "internal/configured", "internal/keys", "internal/manifest", "internal/invoker", "internal/capability/granted"},
	// What a configuration means for a tool, and how two configurations differ.
	"internal/configured": {"internal/oci", "internal/rates", "internal/scope", "internal/tokens", "internal/capability/builtin", "internal/keys", "internal/pattern", "internal/runtime/limittable", "internal/text", "runtime/limits", "wasmtools", "wasmtools/capability", "internal/config"},
	// What a valid token is, whoever shows it.
	"internal/credential": {"internal/textfile"},
	// Binds addresses, whoever accepts connections there.
	"internal/listen": {"internal/text"},
	// Turns claims about a caller into scopes, whoever makes the claims.
	"internal/claim": {"internal/scope", "wasmtools"},
	// Checks tokens of an OpenID Connect issuer.
	"internal/oidc": {"internal/nothttp", "internal/claim", "internal/credential", "internal/text", "wasmtools", "wasmtools/auth"},
	// Checks certificates of clients.
	"internal/certificate": {"internal/claim", "wasmtools", "wasmtools/auth"},
	// Reads files with certificates and keys, whoever uses them.
	"internal/tlsfiles": {"internal/textfile"},
	// Shared by tests that need certificates.
	"internal/testkit/certtest": {},
	// Files that people write.
	"internal/textfile": {"internal/text"},
	// What a module says about its tools; runs none of them.
	"internal/manifest": {"internal/jsontree", "internal/text", "wasmtools", "internal/naming"},
	// Reads the struct tags of what can be limited, as a table.
	"internal/runtime/limittable": {"internal/text", "runtime/limits"},
	// Readers of the values of configuration keys; they read no files.
	"internal/keys": {"internal/pattern", "internal/runtime/limittable", "internal/text"},
	// The part of package config for programs that embed the server.
	"wasmtools/config": {"internal/config", "wasmtools/capability"},
	// The readers of keys for capabilities of embedding programs.
	"wasmtools/config/key": {"internal/keys", "internal/runtime/limittable"},
	// Where secrets are read from, and their earlier values.
	"internal/secret": {"internal/personal", "internal/redact", "wasmtools", "internal/text"},
	// Orders jobs by their cost, whatever they do.
	"internal/runtime/schedule": {},

	// The SDK for Go is a module of its own and imports nothing of ours: a tool does not depend on the server.
	"sdk/go":                      {"sdk/go/internal/double", "sdk/go/internal/random", "sdk/go/internal/typed"},
	"sdk/go/files":                {"sdk/go", "sdk/go/internal/double"},
	"sdk/go/http":                 {"sdk/go", "sdk/go/internal/capability", "sdk/go/internal/typed"},
	"sdk/go/http/transport":       {"sdk/go", "sdk/go/http"},
	"sdk/go/kv":                   {"sdk/go", "sdk/go/internal/capability"},
	"sdk/go/secrets":              {"sdk/go", "sdk/go/internal/capability"},
	"sdk/go/settings":             {"sdk/go", "sdk/go/internal/capability"},
	"sdk/go/tools":                {"sdk/go", "sdk/go/internal/capability", "sdk/go/internal/typed"},
	"sdk/go/internal/capability":  {"sdk/go", "sdk/go/internal/double"},
	"sdk/go/internal/double":      {},
	"sdk/go/toolslog":             {"sdk/go"},
	"sdk/go/toolsrand":            {"sdk/go/internal/random"},
	"sdk/go/toolsrvtest":          {"sdk/go", "sdk/go/internal/double"},
	"sdk/go/internal/conformance": {"sdk/go", "sdk/go/toolsrand"},
	"sdk/go/internal/guest":       {"sdk/go", "sdk/go/toolslog"},
	"sdk/go/internal/reach":       {"sdk/go", "sdk/go/files", "sdk/go/http", "sdk/go/kv", "sdk/go/secrets", "sdk/go/settings", "sdk/go/tools"},
	"sdk/go/internal/refused":     {"sdk/go"},

	// Examples import only what every author can import.
	"examples/csv":      {"sdk/go"},
	"examples/geo":      {"sdk/go", "sdk/go/files"},
	"examples/math":     {"sdk/go"},
	"examples/regex":    {"sdk/go"},
	"examples/template": {"sdk/go"},
	"examples/text":     {"sdk/go"},
	"examples/time":     {"sdk/go"},
	"examples/trip":     {"sdk/go", "sdk/go/tools"},
	"examples/units":    {"sdk/go"},
	"examples/weather":  {"sdk/go", "sdk/go/http", "sdk/go/settings"},

	// Measures what embedding programs use, and the parts below that.
	"bench/cmd/attack":          {"bench/internal/assemble", "bench/internal/measure", "bench/internal/service", "internal/manifest"},
	"bench/cmd/capabilities":    {"bench/internal/guest", "bench/internal/measure", "wasmtools", "internal/config", "wasmtools/invoke", "internal/core"},
	"bench/cmd/languages":       {"bench/internal/load", "bench/internal/measure", "bench/internal/service", "runtime/limits", "internal/runtime/sandbox", "internal/toolfile"},
	"bench/cmd/mcp":             {"bench/internal/gosdk", "bench/internal/guest", "bench/internal/load", "bench/internal/measure", "bench/internal/service"},
	"bench/cmd/sandbox":         {"bench/internal/guest", "bench/internal/load", "bench/internal/measure", "bench/internal/peer", "internal/runtime/abi1", "runtime/limits", "internal/runtime/sandbox", "wasmtools", "internal/catalog", "internal/catalog/directory", "internal/config", "wasmtools/openapi", "wasmtools/schema", "internal/toolfile", "internal/core"},
	"bench/cmd/operate":         {"internal/rates", "wasmtools", "bench/internal/guest", "bench/internal/load", "bench/internal/measure", "bench/internal/principals", "bench/internal/service", "internal/admin", "internal/admin/client", "internal/admin/socket", "internal/claim", "internal/oidc", "internal/config", "wasmtools/config", "wasmtools/server", "wasmtools/service"},
	"bench/cmd/chaos":           {"internal/audit", "bench/internal/assemble", "bench/internal/cluster", "bench/internal/gate", "bench/internal/measure", "bench/internal/service", "internal/admin", "internal/admin/client", "internal/admin/socket"},
	"bench/cmd/many":            {"internal/oci", "bench/internal/cluster", "bench/internal/gate", "internal/admin", "internal/admin/client", "internal/admin/socket", "bench/internal/guest", "bench/internal/load", "bench/internal/measure", "bench/internal/service", "internal/runtime/wasmbin"},
	"bench/cmd/see":             {"internal/admin", "internal/admin/client", "internal/admin/socket", "bench/internal/guest", "bench/internal/load", "bench/internal/measure", "bench/internal/service"},
	"bench/cmd/fleet":           {"bench/internal/cluster", "bench/internal/measure", "internal/state", "internal/state/nats"},
	"bench/cmd/scale":           {"bench/internal/guest", "bench/internal/measure", "bench/internal/principals", "bench/internal/service", "internal/admin", "internal/admin/client", "internal/admin/socket", "internal/script/engine"},
	"bench/cmd/soak":            {"bench/internal/guest", "bench/internal/measure", "internal/runtime/abi1", "runtime/limits", "internal/runtime/sandbox", "internal/config", "wasmtools/server", "wasmtools/service", "internal/core"},
	"bench/guests/extism":       {"bench/guests/add"},
	"bench/guests/goadd":        {"bench/guests/add", "sdk/go"},
	"bench/guests/gocpu":        {"sdk/go"},
	"bench/internal/assemble":   {"internal/runtime/wasmbin", "internal/manifest"},
	"bench/internal/cluster":    nil,
	"bench/internal/gosdk":      {"bench/internal/guest"},
	"bench/internal/guest":      {"internal/runtime/wasmbin", "internal/manifest"},
	"bench/internal/load":       {"bench/internal/measure"},
	"bench/internal/principals": {"internal/state", "internal/state/local", "internal/tokens"},
	"bench/internal/service":    {"bench/internal/load"},

	// Makes a release: runs programs as their users do, and imports no package of the server.
	"deploy/cmd/dist":              {"deploy/internal/archive", "deploy/internal/attest", "deploy/internal/chart", "deploy/internal/compose", "deploy/internal/image", "deploy/internal/installer", "deploy/internal/linuxpackage", "deploy/internal/mcpb", "deploy/internal/monitoring", "deploy/internal/release", "deploy/internal/sbom", "deploy/internal/sdks"},
	"deploy/internal/archive":      {"deploy/internal/release"},
	"deploy/internal/installer":    {"deploy/internal/release"},
	"deploy/internal/linuxpackage": {"deploy/internal/archive", "deploy/internal/monitoring", "deploy/internal/release"},
	"deploy/internal/chart":        {"deploy/internal/release"},
	"deploy/internal/monitoring":   {"deploy/internal/release"},
	"deploy/internal/compose":      {"deploy/internal/monitoring", "deploy/internal/release"},
	"deploy/internal/image":        {"deploy/internal/release"},
	"deploy/internal/sdks":         {"deploy/internal/release"},
	"deploy/internal/attest":       {"deploy/internal/release", "deploy/internal/sbom"},
	"deploy/internal/mcpb":         {"deploy/internal/archive", "deploy/internal/release"},
	"deploy/internal/sbom":         {"deploy/internal/release"},
}

// homes are the third-party libraries, each with the only package that may import it, so that replacing one is a
// change in one place. Libraries that we compare ourselves with have homes, too.
var homes = map[string][]string{
	"github.com/tetratelabs/wazero":          {"internal/runtime/compile", "internal/runtime/internal/foundry", "internal/runtime/sandbox", "bench/internal/peer"},
	"github.com/extism/go-sdk":               {"bench/internal/peer"},
	"github.com/modelcontextprotocol/go-sdk": {"bench/internal/gosdk"},
	"github.com/julienschmidt/httprouter":    {"internal/openapi"},
	"github.com/pelletier/go-toml/v2":        {"internal/config", "internal/script/python"},
	"github.com/fsnotify/fsnotify":           {"internal/catalog/directory"},
	"github.com/evanw/esbuild":               {"internal/script/javascript"},
	"github.com/spf13/cobra":                 {"cmd/toolsrv/command"},
	"golang.org/x/term":                      {"cmd/toolsrv/command"},
	"github.com/go-jose/go-jose/v4":          {"internal/oidc"},
	"github.com/coreos/go-oidc/v3":           {"bench/cmd/operate"},
	"golang.org/x/sys":                       {"internal/runtime/linmem", "internal/supervisor"},
	"github.com/prometheus/client_golang":    {"internal/metrics", "internal/core", "wasmtools/server", "internal/otlp"},
	"github.com/prometheus/client_model":     {"internal/metrics"},
	"google.golang.org/protobuf":             {"internal/testkit/otlptest", "internal/testkit/sigstoretest"},
	"go.opentelemetry.io/otel":               {"internal/otlp"},
	"go.opentelemetry.io/contrib":            {"internal/otlp"},
	"go.opentelemetry.io/proto/otlp":         {"internal/testkit/otlptest"},
	"golang.org/x/net/netutil":               {"wasmtools/server"},
	"github.com/KimMachineGun/automemlimit":  {"internal/runtime/account"},
	"go.etcd.io/bbolt":                       {"internal/state/local", "bench/cmd/capabilities"},
	"github.com/google/go-containerregistry": {"deploy/internal/image", "internal/testkit/ocitest"},
	"oras.land/oras-go/v2":                   {"internal/oci"},
	"github.com/opencontainers":              {"internal/oci"},
	"github.com/sigstore":                    {"internal/signature", "internal/testkit/sigstoretest"},
	"github.com/secure-systems-lab":          {"internal/signature"},
	"github.com/nats-io/nats.go":             {"internal/state/nats", "bench/internal/cluster"},
	"github.com/nats-io/nats-server/v2":      {"bench/internal/cluster"},
	"github.com/goreleaser/nfpm/v2":          {"deploy/internal/linuxpackage"},
	"golang.org/x/crypto/x509roots/fallback": {"deploy/internal/image"},
	"golang.org/x/mod":                       {"deploy/internal/sdks"},
	"github.com/CycloneDX/cyclonedx-go":      {"deploy/internal/sbom"},
	"github.com/spdx/tools-golang":           {"deploy/internal/sbom"},
}

// testHomes are the packages whose tests import a library directly: to compare ours with it, or to use other parts of its module.
var testHomes = map[string][]string{
	"github.com/tetratelabs/wazero":             {"internal/runtime/instrument", "internal/runtime/instrument/internal/weigh", "internal/runtime/internal/foundry", "internal/runtime/sandbox", "internal/runtime/wasmbin"},
	"github.com/santhosh-tekuri/jsonschema/v5":  {"deploy/cmd/dist", "test/clients", "test/conformance", "internal/openapi", "internal/schemas"},
	"github.com/spdx/tools-golang":              {"deploy/cmd/dist"},
	"github.com/in-toto/attestation":            {"deploy/cmd/dist"},
	"google.golang.org/protobuf":                {"deploy/cmd/dist"},
	"github.com/modelcontextprotocol/go-sdk":    {"internal/mcp/session", "test/nats"},
	"github.com/google/jsonschema-go":           {"internal/schemas"},
	"github.com/pelletier/go-toml/v2":           {"internal/config"},
	"github.com/oapi-codegen/runtime":           {"test/clients"},
	"go.opentelemetry.io/collector":             {"test/collector"},
	"github.com/pb33f/libopenapi":               {"test/clients"},
	"github.com/oauth2-proxy/mockoidc":          {"test/clients"},
	"github.com/chromedp/chromedp":              {"test/browser"},
	"github.com/fsnotify/fsnotify":              {"internal/catalog/directory"},
	"github.com/chromedp/cdproto":               {"test/browser"},
	"golang.org/x/oauth2":                       {"test/clients"},
	"github.com/opencontainers":                 {"internal/oci"},
	"github.com/sigstore":                       {"internal/signature"},
	"github.com/secure-systems-lab":             {"internal/signature"},
	"golang.org/x/sys":                          {"internal/runtime/linmem"},
	"golang.org/x/net/http2/hpack":              {"wasmtools/server"},
	"github.com/prometheus/client_golang":       {"internal/metrics"},
	"github.com/prometheus/client_model":        {"wasmtools/server"},
	"github.com/prometheus/common":              {"wasmtools/server"},
	"golang.org/x/time":                         {"internal/rates"},
	"go.etcd.io/bbolt":                          {"internal/state/local"},
	"github.com/nats-io/nats.go":                {"test/nats"},
	"github.com/nats-io/nats-server/v2":         {"test/nats"},
	"github.com/nats-io/jwt/v2":                 {"test/nats"},
	"github.com/nats-io/nkeys":                  {"test/nats"},
	"github.com/coreos/go-oidc/v3":              {"internal/oidc", "wasmtools/server"},
	"github.com/miekg/dns":                      {"test/egress", "internal/capability/http"},
	"github.com/google/go-containerregistry":    {"deploy/internal/image"},
	"golang.org/x/mod":                          {"deploy/internal/release", "deploy/internal/sdks"},
	"helm.sh/helm/v4":                           {"deploy/internal/chart"},
	"k8s.io/api":                                {"deploy/internal/chart"},
	"k8s.io/pod-security-admission":             {"deploy/internal/chart"},
	"sigs.k8s.io/yaml":                          {"deploy/cmd/dist", "deploy/internal/chart", "deploy/internal/installer"},
	"github.com/compose-spec/compose-go/v2":     {"deploy/internal/compose"},
	"github.com/grafana/grafana-foundation-sdk": {"deploy/internal/chart"},
}

// unsafeHomes may import unsafe: one package of the host, and guests, which pass addresses to the host.
var unsafeHomes = []string{"internal/runtime/linmem", "sdk/go", "sdk/go/internal/capability", "sdk/go/internal/conformance", "sdk/go/internal/random"}

// recoverHomes are the files that may recover from a panic, each with the work that it guards. A panic anywhere else is
// a bug that must not be hidden.
var recoverHomes = map[string]string{
	"internal/runtime/sandbox/lease.go":            "a call of a guest",
	"internal/runtime/compile/compile.go":          "wazero's compiler",
	"internal/runtime/internal/foundry/compile.go": "wazero's compiler, and its loading of code",
	"internal/catalog/load.go":                     "the loading of a file",
	"internal/state/local/damage.go":               "the reading of the state's file by its library",
	"internal/openapi/derived.go":                  "the router, which panics where it refuses a route",
	"internal/web/exchange.go":                     "a request, with an embedder's tools and dependencies",
	"internal/signature/check.go":                  "the reading of a signature by its library",
	"internal/mcp/session/reply.go":                "a call of an embedder's tool, on a goroutine of its own",
}

func TestImports(t *testing.T) {
	t.Parallel()
	used := map[[2]string]bool{} // the importers of a package of ours, of a library, or of unsafe
	tested := map[[2]string]bool{}
	unknown := map[string]bool{}
	for _, s := range sources(t) {
		for _, imported := range s.paths {
			own, isOwn := strings.CutPrefix(imported, module+"/")
			isForeign := !isOwn && strings.Contains(strings.Split(imported, "/")[0], ".")
			library, allowed := homeOf(homes, imported)
			testLibrary, testAllowed := homeOf(testHomes, imported)
			switch {
			case s.test && isForeign:
				if tested[[2]string{s.dir, testLibrary}] = true; !slices.Contains(testAllowed, s.dir) {
					t.Errorf("%s imports %s: only tests of %q may; add it to testHomes", s.path, imported, testAllowed)
				}
			case s.test:
			case isOwn:
				allowed, known := edges[s.dir]
				if used[[2]string{s.dir, own}] = true; !known {
					if !unknown[s.dir] {
						t.Errorf("package %s has no line in edges; add one with its reason", s.dir)
					}
					unknown[s.dir] = true
				} else if !slices.Contains(allowed, own) {
					t.Errorf("%s imports %s: %s may import only %q; arrows point down", s.path, own, s.dir, allowed)
				}
			case imported == "unsafe":
				if used[[2]string{s.dir, "unsafe"}] = true; !slices.Contains(unsafeHomes, s.dir) {
					t.Errorf("%s imports unsafe: only %q may", s.path, unsafeHomes)
				}
			case isForeign:
				if used[[2]string{s.dir, library}] = true; !slices.Contains(allowed, s.dir) {
					t.Errorf("%s imports %s: only %q may; a library has one home", s.path, imported, allowed)
				}
			}
		}
	}
	// An unused entry would let a later import through unnoticed.
	for dir, allowed := range edges {
		for _, own := range allowed {
			if !used[[2]string{dir, own}] {
				t.Errorf("edges lets %s import %s, but it doesn't: remove the entry", dir, own)
			}
		}
	}
	for _, dir := range unsafeHomes {
		if !used[[2]string{dir, "unsafe"}] {
			t.Errorf("unsafeHomes has %s, which doesn't import unsafe: remove the entry", dir)
		}
	}
	unused := func(name string, homes map[string][]string, used map[[2]string]bool) {
		for library, dirs := range homes {
			for _, dir := range dirs {
				if !used[[2]string{dir, library}] {
					t.Errorf("%s lets %s import %s, but it doesn't: remove the entry", name, dir, library)
				}
			}
		}
	}
	unused("homes", homes, used)
	unused("testHomes", testHomes, tested)
}

// homeOf finds the library of a map to which a package belongs. It returns the library, and the packages that may import it.
func homeOf(homes map[string][]string, imported string) (library string, dirs []string) {
	for library, dirs := range homes {
		if imported == library || strings.HasPrefix(imported, library+"/") {
			return library, dirs
		}
	}
	return "", nil
}

// TestOlderClients compares a list in wasmtools/RATIONALE.md with the files that treat MCP clients of versions before 2026-07-28 differently.
func TestOlderClients(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(read(t, "wasmtools/RATIONALE.md"), "### Why do older MCP clients see another schema?")
	section, _, _ = strings.Cut(section, "\n### ")
	asks := regexp.MustCompile(`\b(?:Legacy|isModern|olderVersions|HasSessions?|beginsSession|session\.Sessions)\b`)
	for _, s := range sources(t) {
		file, ok := strings.CutPrefix(s.path, "internal/mcp/")
		if !ok || s.test || strings.HasPrefix(file, "session/") || !asks.MatchString(read(t, s.path)) {
			continue
		}
		if !strings.Contains(section, "`"+strings.TrimPrefix(file, "internal/protocol/")+"`") && !strings.Contains(section, "`"+file+"`") {
			t.Errorf("internal/mcp/%s treats older clients differently, but wasmtools/RATIONALE.md doesn't list it", file)
		}
	}
}
