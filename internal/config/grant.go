package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/textfile"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// A Grant says what the tools that match Match may reach, of the things that they declare.
type Grant struct {
	// Match is a path such as "weather/now" or a pattern such as "weather/*"; see docs/configuration.md.
	Match string
	// Line is the line of the file where the grant begins; 0 means that it was not read from a file.
	Line int
	// Rules say what is granted of each capability.
	Rules capability.Rules
}

// Secrets is the table [secrets]: where secrets are. If there are several with one name, Files comes before Environment, and Environment before
// Directory.
type Secrets struct {
	// Directory has a file for each secret, with the secret's name. It may be empty.
	Directory string
	// Files are files with secrets in other places, by the names of the secrets.
	Files map[string]string
	// Environment are environment variables with secrets, by the names of the secrets.
	Environment map[string]string
	// Lines are the lines of the configuration with the entries of Files and Environment, by the names of the secrets. Errors show these
	// instead of names, which may be secrets in the wrong place. It may be nil.
	Lines map[string]int
}

// State is the table [state].
type State struct {
	// Directory is where tools' keys and values are kept, and everything else that outlives the server. It may be empty.
	Directory string `restart:"state.directory"`
	// Implied is whether the program has chosen Directory, because the file names none. Then it is created when something is first kept there, and if
	// that fails, everything else continues to work. Only the program sets it; the file has no key for it.
	Implied bool
	// URL names the NATS servers that hold the state, such as "nats://a,b,c". Then Directory has only what belongs to this machine, such as the admin
	// socket. If empty, the state is in Directory.
	URL string `restart:"state.url"`
	// Credentials is a file with a user's credentials for NATS, or empty.
	Credentials string `restart:"state.credentials"`
	// CA is a file with the authorities for the certificates of the NATS servers; if empty, the system's are used. Certificate and Key identify this
	// server to them, or are empty.
	CA          string `restart:"state.server_ca"`
	Certificate string `restart:"state.certificate"`
	Key         string `restart:"state.key"`
	// Prefix is the name of the bucket. Servers that share a state have the same Prefix.
	Prefix string `restart:"state.prefix"`
	// Versions is how many bytes earlier versions of all served files may take; 0 keeps none.
	Versions int64
}

// maxGrants is how many grants there may be.
const maxGrants = 1000

// secretsTable returns the readers of the keys of [secrets].
func secretsTable(s *Secrets, directory string) key.Table {
	return key.Table{
		// directory with a file for each [secret](capabilities.md#secrets), with its name; callers' own are in its folder
		// [`principals`](capabilities.md#each-callers-own)
		"directory": keys.Word(&s.Directory, "a path", keys.Path(directory, false)),
		// names and paths | files of secrets that lie elsewhere
		"files": keys.Entries(&s.Files, `a table such as {api_key = "/etc/api.key"}`, keys.SecretName,
			func(to *string) keys.Reader { return keys.Word(to, "a path", keys.Path(directory, true)) }),
		// names and variables | environment variables that hold secrets
		"environment": keys.Entries(&s.Environment, `a table such as {api_key = "API_KEY"}`, keys.SecretName,
			func(to *string) keys.Reader { return keys.Word(to, "the name of a variable", variable) }),
	}
}

// noteLines notes the lines of the entries of [secrets].
func (d *document) noteLines(s *Secrets) {
	for _, list := range []struct {
		name    string
		entries map[string]string
	}{{"environment", s.Environment}, {"files", s.Files}} {
		for name := range list.entries {
			if s.Lines == nil {
				s.Lines = map[string]int{}
			}
			s.Lines[name] = d.line(d.offsets[join(join("secrets", list.name), name)])
		}
	}
}

// stateTable returns the readers of the keys of [state].
func stateTable(s *State, directory string) key.Table {
	named := keys.Word(&s.Directory, "a path", keys.Path(directory, false))
	return key.Table{
		// where the server keeps its [state](operations.md#state); `""` is the directory that systemd gives (`StateDirectory=`), or else the folder
		// `.toolsrv` beside the configuration
		"directory": func(value any) error {
			s.Implied = false
			return named(value)
		},
		// `nats://` or `tls://` and up to 16 hosts with commas | servers of NATS that have the state instead, so that several servers [share
		// it](operations.md#several-servers-with-one-state)
		"url": keys.Word(&s.URL, `addresses such as "nats://a,b,c"`, natsURL),
		// file with a user's credentials for NATS: a JWT and a seed, as `nsc` makes them
		"credentials": keys.Word(&s.Credentials, "a path", keys.Path(directory, false)),
		// file with the authorities for the certificates of NATS; `""` means the system's
		"server_ca": keys.Word(&s.CA, "a path", keys.Path(directory, false)),
		// file with the certificate that identifies this server to NATS
		"certificate": keys.Word(&s.Certificate, "a path", keys.Path(directory, false)),
		// file with the key of that certificate
		"key": keys.Word(&s.Key, "a path", keys.Path(directory, false)),
		// 1 to 32 of `A-Z a-z 0-9 - _` | name of the bucket in NATS: servers with the same name share one state
		"prefix": keys.Word(&s.Prefix, "a name", bucketName),
		// how much the last five versions of each file may take there together, for [rollbacks](administration.md#versions-of-files); 0 keeps none
		"versions": keys.Quantity(limittable.Bytes, 0, 1<<50, func(n int64) { s.Versions = n }),
	}
}

// checkState checks which keys of [state] go together.
func checkState(d *document, s *State) {
	switch {
	case s.URL != "" && s.Directory != "" && !s.Implied:
		d.fail("state.directory", errors.New("can't be combined with url, since a state is in one place: leave one of them out"))
	case s.URL == "" && !d.refused("state.url") && (s.Credentials != "" || s.CA != "" || s.Certificate != "" || s.Key != ""):
		d.fail("state", errors.New("credentials, server_ca, certificate and key are for NATS: set url, too"))
	case (s.Certificate == "") != (s.Key == "") && !d.refused("state.certificate", "state.key"):
		d.fail("state", errors.New("certificate and key belong together: name both files"))
	}
}

// mostServers is how many NATS servers may be named.
const mostServers = 16

// natsURL checks the addresses of NATS servers.
func natsURL(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	scheme, hosts, ok := strings.Cut(s, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return "", errors.New("must begin with nats:// or tls://")
	}
	all := strings.Split(hosts, ",")
	if len(all) > mostServers {
		return "", fmt.Errorf("names %d servers; at most %d are allowed", len(all), mostServers)
	}
	for _, host := range all {
		u, err := url.Parse(scheme + "://" + host)
		switch {
		case err != nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
			return "", errors.New("is not a list of hosts: write nats://a:4222,b:4222")
		case u.User != nil:
			return "", errors.New("has a user or password: put credentials into a file, and name it in state.credentials")
		}
	}
	return s, nil
}

// bucketName checks the name of a bucket.
func bucketName(s string) (string, error) {
	if s == "" || len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return "", errors.New("must be 1 to 32 of the characters A-Z a-z 0-9 - _")
	}
	return s, nil
}

// grants reads the tables [[grant]]. all is used for a missing match; if all is empty, a missing match is an error.
func (d *document) grants(to *[]Grant, kinds []capability.Kind, directory, all string) keys.Reader {
	return tableList(d, "grant", maxGrants, fewPatterns, to, func(place string, values map[string]any, g *Grant) {
		g.Match, g.Line = all, d.line(d.offsets[place])
		t, rules := grantTable(g, kinds, directory)
		d.readTable(place, values, t)
		if _, ok := values["match"]; !ok && all == "" {
			d.fail(place, errors.New(`match is missing: name the tools, as in match = "math/*"`))
		}
		g.Rules = rules(values)
		for _, k := range kinds {
			if rule := g.Rules[k.Name]; rule != nil && k.Misfits != nil {
				k.Misfits(rule, func(key string, err error) { d.fail(place+"."+key, err) })
			}
		}
	})
}

// grantTable returns the readers of the keys of [[grant]]. After they have read a grant, rules returns its rules, by capability.
func grantTable(g *Grant, kinds []capability.Kind, directory string) (t key.Table, rules func(values map[string]any) capability.Rules) {
	t = key.Table{
		// a pattern, as in [overrides](#limits) | which tools the grant is for. Several grants for a tool apply together; for `kv`, `kv_entries`
		// and `settings`, the last one applies
		"match": keys.Word(&g.Match, `a pattern such as "math/*"`, keys.Pattern),
	}
	all, tables := capability.Rules{}, map[string]key.Table{}
	for _, k := range kinds {
		all[k.Name] = k.New()
		tables[k.Name] = all[k.Name].Keys(directory)
		maps.Copy(t, tables[k.Name])
	}
	return t, func(values map[string]any) capability.Rules {
		var said capability.Rules
		for name, keys := range tables {
			for known := range keys {
				if _, ok := values[known]; ok {
					if said == nil {
						said = capability.Rules{}
					}
					said[name] = all[name]
				}
			}
		}
		return said
	}
}

// LoadGrants reads a file that has only the tables [[grant]], [secrets] and [state], and adds its grants to c. A grant without match applies to every
// tool. Paths in the file are relative to directory.
func (c *Config) LoadGrants(file, directory string) error {
	text, err := textfile.Read(file)
	if err != nil {
		return fmt.Errorf("read the grants: %w", err)
	}
	d := &document{scanner: scanner{name: file, text: text}}
	values, err := d.parse()
	if err != nil {
		return err
	}
	var granted []Grant
	secrets, state := c.Secrets, c.State
	d.known = map[string]key.Table{"secrets": secretsTable(&secrets, directory), "state": stateTable(&state, directory)}
	top := key.Table{"grant": d.grants(&granted, builtin.With(c.Capabilities), directory, everyTool)}
	for name, t := range d.known {
		top[name] = d.table(name, t)
	}
	d.readTable("", values, top)
	checkState(d, &state)
	if err := d.err(); err != nil {
		return err
	}
	d.noteLines(&secrets)
	c.Grants, c.Secrets, c.State = append(slices.Clip(c.Grants), granted...), secrets, state
	return nil
}

// everyTool is the pattern of all tools.
const everyTool = "**"

// variable checks the name of an environment variable.
func variable(s string) (string, error) {
	if s == "" || len(s) > maxText || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' }) {
		return "", fmt.Errorf("%q is not the name of an environment variable", text.Short(s))
	}
	return s, nil
}
