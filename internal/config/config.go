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
// A field with the tag restart, which is its key, is read only when a server starts.
type Config struct {
	// Title, Version and Description are shown in the OpenAPI document.
	Title       string `restart:"title"`
	Version     string `restart:"version"`
	Description string `restart:"description"`

	Server Server
	Tools  Tools
	// Sources are further tools directories, beside the one of Tools.
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
	// Grants say what tools may reach; those that match a tool add up.
	Grants []Grant
	// Capabilities are the program's own, besides package builtin. Only the program sets them; the file has no key for them, and don't
	// change at a reload.
	Capabilities []capability.Kind

	// Limits hold for every tool. Overrides change them for the tools that match; later ones win.
	Limits    limits.Limits
	Overrides []Override
}

// Server is the table [server].
type Server struct {
	// Addresses are host:port to listen on, or unix: with the path of a socket. Port 0 is any free port, and an empty host is all addresses of
	// the machine.
	Addresses []string `restart:"server.address"`
	// Listeners are listened on in place of Addresses, if there are any. They may come from another process, so connections are accepted
	// once the tools are listed, or after ten seconds, and state that can't be opened does not keep the server from starting. The server
	// closes them. Only the program sets them; the file has no key for them.
	Listeners []net.Listener
	// TLS is used on TCP addresses, if it has a certificate.
	TLS TLS
	// PublicURL is where clients reach the server, such as "https://example.com/tools" or the path "/tools". If it is empty, they reach
	// it at its own address.
	PublicURL string `restart:"server.public_url"`
	// Hosts are the names by which clients reach the server, with any port, such as "tools.example.com" or "*.example.com". A server
	// that listens on loopback also has the names of loopback; any other server has every name if Hosts is empty.
	Hosts []string
	// CORSOrigins are the origins whose pages may call tools, such as "https://app.example.com", or "*" for every one.
	CORSOrigins []string
	// TrustedProxies are addresses of proxies that are believed when they say for whom they send a request, which the log shows.
	TrustedProxies []netip.Prefix
	// ProxyHeader is the header in which they say it: "X-Forwarded-For" or "Forwarded".
	ProxyHeader string
	// Memory limits what all tools take together, in bytes; 0 is half of what the process has.
	Memory int64 `restart:"server.memory"`
	// CodeMemory limits the compiled code in memory, in bytes, if Tools.CacheDir has a copy of it; 0 is an eighth of what the process has,
	// at most 1 GiB.
	CodeMemory int64 `restart:"server.code_memory"`
}

// TLS is the table [server.tls]. Its files are read again when they change.
type TLS struct {
	// Certificate and Key are files in PEM form: the certificate with those of its authorities below it, and its private key.
	Certificate string `restart:"server.tls.certificate"`
	Key         string `restart:"server.tls.key"`
	// ClientCA is a file with the certificates of those who may issue clients' certificates, or empty: no client is asked for one.
	ClientCA string `restart:"server.tls.client_ca"`
}

// Tools is the table [tools].
type Tools struct {
	// Directory holds the .wasm files, also in subfolders. Empty means that there are only Sources.
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
	// Modules is the largest number of files that are served.
	Modules int `restart:"tools.modules"`
	// DescribeFuel is how much fuel a module has that is run to be described; 0 is 10 billion.
	DescribeFuel int64 `restart:"tools.describe_fuel"`
	// Reasons are the reasons that the file gives for entries of Disabled.
	Reasons map[string]string
	// Lines are where the entries of the list that counts stand in the file, or empty if there is no file.
	Lines []int
	// CacheDir is where compiled code is kept, or empty for "toolsrv" in the user's cache directory.
	CacheDir string `restart:"tools.cache_directory"`
}

// A Source is a table [[source]]: a tools directory, a module of a registry, or a bucket.
type Source struct {
	// Name is the source's name, which no other source has. If empty, by its directory.
	Name string
	// Directory holds the .wasm files, also in subfolders. If empty, there is an OCI or a Bucket.
	Directory string
	// Bucket is the name of an object bucket in the NATS that has the state. If empty, there is a Directory or an OCI.
	Bucket string
	// Scripts is whether scripts in Directory or Bucket are served, too.
	Scripts bool
	// OCI is the repository of a registry that has a module, such as "ghcr.io/acme/csv". If empty, there is a Directory or a Bucket.
	OCI string
	// Mirrors are repositories with copies of what OCI has, which are asked first for anything with a digest.
	Mirrors []string
	// Tag is the tag of the module, a range of versions such as "~1.2", or a digest.
	Tag string
	// Locked is the digest that the lock beside the configuration has for OCI and Tag, or empty. Load sets it; the file has no key for it.
	Locked string
	// Credentials is a file with the registry's credentials, in the format of docker's config.json. If empty, docker's own, and podman's.
	Credentials string
	// CA is a file with authorities that are trusted beside the system's. If empty, those alone.
	CA string
	// PlainHTTP allows HTTP for a registry that is not on loopback.
	PlainHTTP bool
	// Signers are the signers, one of whom must have signed what is served from OCI, and Minimum is the lowest version to serve. If nil,
	// what the registry has is served as it is. There are none if Tag or Locked is a digest.
	Signers []Signer
	Minimum string
	// Namespaces are those in which its files may have tools, each with those below it; "" is that of tools without a namespace. If nil, all that no
	// other source names.
	Namespaces []string
	// Prefix is put before the namespace of each file. If empty, nothing is.
	Prefix string
}

// A Signer is a table [[source.signer]]: a key, or an identity.
type Signer struct {
	// Key is a PEM file with a public key. If empty, the others are set.
	Key string
	// Issuer is who vouches for the identity, and Subject the identity, or the beginning of one owner's identities, with a * at the end.
	Issuer, Subject string
	// Root is a file with the authorities that may certify it, in the form of Sigstore's trusted_root.json.
	Root string
}

// A Pin is a table [[pin]]: the files that it matches must have its digest, or that of another pin with the same match.
type Pin struct {
	// Match is a pattern of tools, such as "acme/*", or the name of a file in its source, such as "acme/csv.wasm", which has a dot.
	Match string
	// SHA256 is the digest of a module, or of the module that a script becomes, in lower-case hexadecimal.
	SHA256 string
	// Line is where the table stands in the file; 0 means there is no file.
	Line int
}

// Auth is the table [auth].
type Auth struct {
	// Tokens are the tokens in the configuration file. Load adds the ones in TokensFile.
	Tokens []string
	// TokensFile is a file with one token a line, or empty.
	TokensFile string
	// Required refuses everybody while there is no token, instead of letting everybody in.
	Required bool
	// Declared are the tables [[auth.token]]: tokens with a name and scopes.
	Declared []Token
	// OIDC is the table [auth.oidc]. It is in force if it has an issuer.
	OIDC OIDC
	// Certificates are the tables [[auth.certificate]], whose claims are "dns", "uri", "email" and "ip": the kinds of alternative names of a
	// client's certificate.
	Certificates []ClaimRule
}

// OIDC is the table [auth.oidc]: an issuer of OpenID Connect, whose tokens are taken.
type OIDC struct {
	// Issuer is the address that the issuer calls itself. Audience lists the audiences that are accepted: a token must have one of them.
	Issuer   string
	Audience []string
	// Name is the claim that is the principal's name.
	Name string
	// Rules are the tables [[auth.oidc.rule]]. Those that match a token add up.
	Rules []ClaimRule
}

// A ClaimRule gives scopes to callers with a certain value of a claim.
type ClaimRule struct {
	// Claim is the claim's name, and Value its value, or one of its values if it is a list. A value that ends in * matches all that begin
	// like it.
	Claim, Value string
	// Scopes are patterns of tools, and roles.
	Scopes []string
	// Rate limits how many calls each of these callers makes. Of the rules that match, the first with a rate counts.
	Rate wasmtools.Rate
}

// A Token is a table [[auth.token]].
type Token struct {
	// Name is the name of the token's principal, which no other table has.
	Name string
	// SHA256 is the token's digest. Load computes it from the token in File.
	SHA256 [sha256.Size]byte
	// File is a file with the token, or empty.
	File string
	// Scopes are patterns of tools, and the roles "admin", "admin:read" and "metrics". If there are none, the token may do nothing.
	Scopes []string
	// Expires is when it is refused from then on; zero means never.
	Expires time.Time
	// Networks are the addresses from which it is taken; if there are none, all.
	Networks []netip.Prefix
	// Rate limits how many calls are made with it.
	Rate wasmtools.Rate
}

// MCP is the table [mcp].
type MCP struct {
	// Enabled is whether the server answers MCP clients at /mcp.
	Enabled bool `restart:"mcp.enabled"`
	// Search is when clients get tools that search among the others: "never" for all in one list, "always", or "auto", which goes by how
	// many there are.
	Search string `restart:"mcp.search"`
}

// Admin is the table [admin].
type Admin struct {
	// Enabled is whether the server can be administered over HTTP, at /admin/v1, by those with the role for it, and Disabled whether it
	// can't be by anybody. In a file they are enabled = true and false. With neither, it can be while there are tokens with names: "auto".
	Enabled, Disabled bool
	// Socket is the path of the Unix socket over which the server is administered on its own machine. If empty, admin.sock in the directory of
	// the state, if there is one. "none": there is no socket.
	Socket string `restart:"admin.socket"`
	// Upload is whether those who have the role for it may put files into the tools directories, and remove them.
	Upload bool
}

// Audit is the table [audit].
type Audit struct {
	// Strict is whether operators can change things only once the audit entry is on disk.
	Strict bool
}

// Rates is the table [rates]: how many calls callers may make that have no rate of their own.
type Rates struct {
	// Default is the rate of each principal, and Anonymous of each address while no credentials are needed. An IPv6 address counts as its
	// network of 64 bits.
	Default, Anonymous wasmtools.Rate
}

// Metrics is the table [metrics]: what the server tells Prometheus.
type Metrics struct {
	// Enabled is whether it tells anything, at /metrics.
	Enabled bool `restart:"metrics.enabled"`
	// Address is a host:port at which /metrics is answered to anybody, in place of the server's own addresses. If empty, there, to those who have the
	// role "metrics", or to anybody if nobody has to show who they are.
	Address string `restart:"metrics.address"`
	// Tools is how many tools have their own figures: those called most. Calls of the rest count together.
	Tools int `restart:"metrics.tools"`
	// Principals is whether calls are counted by caller, too.
	Principals bool `restart:"metrics.principals"`
}

// Console is the table [console]: the pages for people.
type Console struct {
	// Enabled is whether there are any, at /, /docs and /console.
	Enabled bool `restart:"console.enabled"`
}

// Events is the table [events]: what clients hear of the tools.
type Events struct {
	// Enabled is whether they can listen at /events.
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
	l.Concurrency = 0 // how many it is depends on what a tool needs
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

// Load reads the file at path, and the tokens file that it names. Paths in it are relative to its folder. An error names the file, the
// line, the key, and what is allowed. It never contains a token. capabilities are the program's own.
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

// Parse is Read, but reads neither Auth.TokensFile nor files of Auth.Declared. It does not keep text.
func Parse(text []byte, directory string, capabilities ...capability.Kind) (*Config, error) {
	d := &document{scanner: scanner{name: "configuration", text: text}}
	return d.read(directory, capabilities)
}
