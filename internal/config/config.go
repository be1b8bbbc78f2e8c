// Package config turns a TOML file into a validated [Config]. Every key has a default, an unknown key is an error, and every value
// is checked before anything uses it.
package config

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/lockfile"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/textfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// A Config says what a server serves, where, to whom and with which limits. It must not be changed once a server has it; from then on it
// is safe for concurrent use.
//
// A field with the tag restart is read only when a server starts. The tag gives the field's key in the file.
type Config struct {
	// Title, Version and Description are shown in the OpenAPI document.
	Title       string `restart:"title"`
	Version     string `restart:"version"`
	Description string `restart:"description"`

	Server Server
	Tools  Tools
	// Sources are further sources of tools, in addition to the directory in Tools.
	Sources []Source `restart:"source"`
	Auth    Auth
	MCP     MCP

	Secrets Secrets
	State   State
	Admin   Admin
	Audit   Audit
	Rates   Rates
	Metrics Metrics
	Console Console
	Events  Events
	OTLP    OTLP
	// Pins say which content files must have.
	Pins []Pin
	// Grants say what tools may reach. All grants that match a tool apply together.
	Grants []Grant
	// Capabilities are the program's own, in addition to those of package builtin. Only the program sets them. The file has no key for them, and a
	// reload does not change them.
	Capabilities []capability.Kind

	// Limits apply to every tool. Overrides change them for matching tools. Later ones win.
	Limits    limits.Limits
	Overrides []Override
}

// Server is the table [server].
type Server struct {
	// Addresses are host:port to listen on, or unix: with the path of a socket. Port 0 means any free port, and an empty host means all addresses of
	// the machine.
	Addresses []string `restart:"server.address"`
	// Listeners, if there are any, are used instead of Addresses. They may come from another process, with clients already waiting. So the server
	// accepts connections only once the tools are listed, or after ten seconds, and starts even if its state can't be opened. The server closes them.
	// Only the program sets them; the file has no key for them.
	Listeners []net.Listener
	// TLS is used on TCP addresses if a certificate is set.
	TLS TLS
	// PublicURL is where clients reach the server, such as "https://example.com/tools" or the path "/tools". If empty, they reach it at its own
	// address.
	PublicURL string `restart:"server.public_url"`
	// Hosts are the host names by which clients reach the server, with any port, such as "tools.example.com" or "*.example.com". On loopback, the
	// names of loopback are allowed, too. Any other server allows every name if Hosts is empty.
	Hosts []string
	// CORSOrigins are the origins whose pages may call tools, such as "https://app.example.com", or "*" for every origin.
	CORSOrigins []string
	// TrustedProxies are addresses of proxies that are trusted to name the client of a request, which the log shows.
	TrustedProxies []netip.Prefix
	// ProxyHeader is the header in which they name the client: "X-Forwarded-For" or "Forwarded".
	ProxyHeader string
	// Memory limits the memory of all tools together, in bytes; 0 means half of what the process has.
	Memory int64 `restart:"server.memory"`
	// CodeMemory limits the compiled code in memory, in bytes, if Tools.CacheDir has a copy of it; 0 means an eighth of what the process has, at most
	// 1 GiB.
	CodeMemory int64 `restart:"server.code_memory"`
}

// TLS is the table [server.tls]. Its files are read again when they change.
type TLS struct {
	// Certificate and Key are PEM files: the certificate, followed by those of its authorities, and its private key.
	Certificate string `restart:"server.tls.certificate"`
	Key         string `restart:"server.tls.key"`
	// ClientCA is a file with the certificates of authorities that may issue clients' certificates. If empty, clients are not asked for certificates.
	ClientCA string `restart:"server.tls.client_ca"`
}

// Tools is the table [tools].
type Tools struct {
	// Directory has the .wasm files, including those in subfolders. Empty means that there are only Sources.
	Directory string `restart:"tools.directory"`
	// Scripts is whether scripts in Directory are served, too.
	Scripts bool `restart:"tools.scripts"`
	// ScriptHelper is a command that calls script.Serve with its last argument and its standard input and output: scripts are read in
	// separate processes. Only the program sets it; the file has no key for it. If it is empty, the server's own process reads scripts.
	ScriptHelper []string
	// CompileHelper is a command that calls compile.Serve with its last argument and its standard input and output: modules are compiled in
	// separate processes, which the system limits. Only the program sets it; the file has no key for it. If it is empty, the server's own
	// process compiles.
	CompileHelper []string
	// Allowlist is whether only the tools in Enabled start enabled (mode = "allowlist"), or all tools except those in Disabled. An entry
	// is a tool such as "math/div", or a namespace such as "web" with those below it.
	Allowlist         bool
	Enabled, Disabled []string
	// Modules is how many files are served at most.
	Modules int `restart:"tools.modules"`
	// DescribeFuel is how much fuel a module has while it is run to be described; 0 means 10 billion.
	DescribeFuel int64 `restart:"tools.describe_fuel"`
	// Reasons are the reasons in the file for entries of Disabled.
	Reasons map[string]string
	// Lines are the lines of the entries of the list that applies. It is empty if there is no file.
	Lines []int
	// CacheDir is where compiled code is kept, or empty for "toolsrv" in the user's cache directory.
	CacheDir string `restart:"tools.cache_directory"`
}

// A Source is a table [[source]]: a tools directory, a module of a registry, or a bucket.
type Source struct {
	// Name is the unique name of the source. If empty, the directory is used in its place.
	Name string
	// Directory has the .wasm files, including those in subfolders. If empty, there is an OCI or a Bucket.
	Directory string
	// Bucket is the name of an object bucket in the NATS servers that hold the state. If empty, there is a Directory or an OCI.
	Bucket string
	// Scripts is whether scripts in Directory or Bucket are served, too.
	Scripts bool
	// OCI is a repository of a registry with a module, such as "ghcr.io/acme/csv". If empty, there is a Directory or a Bucket.
	OCI string
	// Mirrors are repositories with copies of OCI. Anything with a digest is first requested from them.
	Mirrors []string
	// Tag is the tag of the module, a range of versions such as "~1.2", or a digest.
	Tag string
	// Locked is the digest for OCI and Tag in the lock file beside the configuration, or empty. Load sets it; the file has no key for it.
	Locked string
	// Credentials is a file with the registry's credentials, in the format of docker's config.json. If empty, docker's own file is used, and
	// podman's.
	Credentials string
	// CA is a file with authorities that are trusted in addition to the system's. If empty, only the system's are.
	CA string
	// PlainHTTP allows HTTP for a registry that is not on loopback.
	PlainHTTP bool
	// Signers are the accepted signers: one of them must have signed what is served from OCI. Minimum is the lowest version to serve. If Signers is
	// nil, no signature is required. There are none if Tag or Locked is a digest.
	Signers []Signer
	Minimum string
	// Namespaces are the namespaces in which the source's files may have tools, including those below them; "" is for tools without a namespace. If
	// nil, they are all that no other source names.
	Namespaces []string
	// Prefix is put before the namespace of each file. It may be empty.
	Prefix string
}

// A Signer is a table [[source.signer]]: a key, or an identity.
type Signer struct {
	// Key is a PEM file with a public key. If empty, the other fields are set.
	Key string
	// Issuer is the issuer that vouches for the identity. Subject is the identity, or the beginning of one owner's identities followed by a *.
	Issuer, Subject string
	// Root is a file with the authorities that may certify the identity, in the form of Sigstore's trusted_root.json.
	Root string
}

// A Pin is a table [[pin]]: the files that it matches must have its digest, or the digest of another pin with the same match.
type Pin struct {
	// Match is a pattern of tools, such as "acme/*", or the name of a file in its source, such as "acme/csv.wasm", which has a dot.
	Match string
	// SHA256 is the digest of a module, or of the module that a script becomes, in lower-case hexadecimal.
	SHA256 string
	// Line is the line of the table in the file; 0 means that there is no file.
	Line int
}

// Auth is the table [auth].
type Auth struct {
	// Tokens are the tokens in the configuration file. Load adds the ones in TokensFile.
	Tokens []string
	// TokensFile is a file with one token per line, or empty.
	TokensFile string
	// Required refuses every request while there is no token, instead of admitting every request.
	Required bool
	// Declared are the tables [[auth.token]]: tokens with a name and scopes.
	Declared []Token
	// OIDC is the table [auth.oidc]. It applies if it has an issuer.
	OIDC OIDC
	// Certificates are the tables [[auth.certificate]], whose claims are "dns", "uri", "email" and "ip": the kinds of alternative names of a
	// client's certificate.
	Certificates []ClaimRule
}

// OIDC is the table [auth.oidc]: an issuer of OpenID Connect whose tokens are accepted.
type OIDC struct {
	// Issuer is the issuer's URL, exactly as in its tokens. Audience lists the accepted audiences: a token must have one of them.
	Issuer   string
	Audience []string
	// Name is the claim with the principal's name.
	Name string
	// Rules are the tables [[auth.oidc.rule]]. All rules that match a token apply together.
	Rules []ClaimRule
}

// A ClaimRule gives scopes to callers with a certain value of a claim.
type ClaimRule struct {
	// Claim is the claim's name, and Value its value, or one of its values if it is a list. A value that ends in * matches all values with the same
	// beginning.
	Claim, Value string
	// Scopes are patterns of tools, and roles.
	Scopes []string
	// Rate limits the calls of each of these callers. Among the matching rules, the first one with a rate applies.
	Rate wasmtools.Rate
}

// A Token is a table [[auth.token]].
type Token struct {
	// Name is the name of the token's principal. It must be unique.
	Name string
	// SHA256 is the token's digest. Load computes it from the token in File.
	SHA256 [sha256.Size]byte
	// File is a file with the token, or empty.
	File string
	// Scopes are patterns of tools, and the roles "admin", "admin:read" and "metrics". If there are none, the token may do nothing.
	Scopes []string
	// Expires is the time from which the token is refused; zero means never.
	Expires time.Time
	// Networks are the addresses from which the token is accepted. If empty, it is accepted from everywhere.
	Networks []netip.Prefix
	// Rate limits the calls that are made with the token.
	Rate wasmtools.Rate
}

// MCP is the table [mcp].
type MCP struct {
	// Enabled is whether the server answers MCP clients at /mcp.
	Enabled bool `restart:"mcp.enabled"`
	// Search is when clients get tools that search among the others: "never", for one list of all tools, "always", or "auto", which depends on the
	// number of tools.
	Search string `restart:"mcp.search"`
}

// Admin is the table [admin].
type Admin struct {
	// Enabled is whether callers with the role for it can administer the server over HTTP, at /admin/v1. Disabled is whether nobody can. In a file
	// they are enabled = true and enabled = false. If neither is set ("auto"), administration is possible while there are tokens with names.
	Enabled, Disabled bool
	// Socket is the path of the Unix socket over which the server is administered on its own machine. If empty, it is admin.sock in the directory of
	// the state, if there is one. "none" means that there is no socket.
	Socket string `restart:"admin.socket"`
	// Upload is whether callers with the role for it may put files into the tools directories and remove them.
	Upload bool
}

// Audit is the table [audit].
type Audit struct {
	// Strict is whether operators can change things only once the audit entry is on disk.
	Strict bool
}

// Rates is the table [rates]: how many calls a caller without a rate of its own may make.
type Rates struct {
	// Default is the rate of each principal. Anonymous is the rate of each address while no credentials are needed. An IPv6 address means its /64
	// network.
	Default, Anonymous wasmtools.Rate
}

// Metrics is the table [metrics]: the metrics for Prometheus.
type Metrics struct {
	// Enabled is whether there are metrics, at /metrics.
	Enabled bool `restart:"metrics.enabled"`
	// Address is a host:port at which /metrics answers everybody, instead of at the server's own addresses. If empty, /metrics is at the server's own
	// addresses and needs the role "metrics", unless the server requires no credentials.
	Address string `restart:"metrics.address"`
	// Tools is how many tools have their own figures: those called most. Calls of the others are counted together.
	Tools int `restart:"metrics.tools"`
	// Principals is whether calls are counted by caller, too.
	Principals bool `restart:"metrics.principals"`
}

// Console is the table [console]: the web pages for people.
type Console struct {
	// Enabled is whether there are pages, at /, /docs and /console.
	Enabled bool `restart:"console.enabled"`
}

// Events is the table [events]: notifications of changes of the tools.
type Events struct {
	// Enabled is whether clients can listen at /events.
	Enabled bool
}

// An Override changes the limits of the tools that Match matches.
type Override struct {
	// Match is a path such as "math/add" or a pattern such as "math/*"; see docs/configuration.md.
	Match string
	// Limits are the limits to change.
	Limits limits.Limits
}

// Default returns the configuration of an empty file. The caller owns it.
func Default() *Config {
	l := limittable.Default()
	l.Concurrency = 0 // the default depends on what a tool needs
	return &Config{
		Title:   "Tools",
		Version: "0.1.0",
		Server:  Server{Addresses: []string{"127.0.0.1:8000"}, ProxyHeader: proxyHeaders[0]},
		Tools:   Tools{Directory: "tools", Modules: defaultModules},
		Auth:    Auth{OIDC: OIDC{Name: "sub"}},
		MCP:     MCP{Enabled: true, Search: searches[0]},
		State:   State{Versions: 1 << 30, Prefix: "toolsrv"},
		Metrics: Metrics{Tools: defaultCounted},
		Console: Console{Enabled: true},
		Events:  Events{Enabled: true},
		OTLP:    OTLP{Sample: 1, Timeout: 10 * time.Second, Service: "toolsrv"},
		Limits:  l,
	}
}

// Load reads the file at path, and the tokens file that it names. Paths in the file are relative to its folder. An error names the file, the line,
// the key, and what is allowed. It never contains a token. capabilities are the program's own.
func Load(path string, capabilities ...capability.Kind) (*Config, error) {
	text, err := textfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	c, err := Read(path, text, filepath.Dir(path), capabilities)
	if err != nil {
		return nil, err
	}
	return c, c.readLock(lockfile.Path(path))
}

// Read turns the text of a file with this name in directory into a Config, and reads the files with tokens that it names.
func Read(name string, text []byte, directory string, capabilities []capability.Kind) (*Config, error) {
	d := &document{scanner: scanner{name: name, text: text}}
	c, err := d.read(directory, capabilities)
	if err != nil {
		return nil, err
	}
	if c.Auth.TokensFile != "" {
		tokens, err := credential.ReadFile(c.Auth.TokensFile)
		if err != nil {
			return nil, fmt.Errorf("%s: auth.tokens_file: %w", d.place(d.offsets["auth.tokens_file"]), keys.Pathless(err))
		}
		c.Auth.Tokens = append(c.Auth.Tokens, tokens...)
	}
	return c, d.readTokens(&c.Auth)
}

// Parse is like Read, but reads neither Auth.TokensFile nor the files of Auth.Declared. It does not keep text.
func Parse(text []byte, directory string, capabilities ...capability.Kind) (*Config, error) {
	d := &document{scanner: scanner{name: "configuration", text: text}}
	return d.read(directory, capabilities)
}
