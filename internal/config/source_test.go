package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
)

// TestSources checks that tools.directory is the short form of one source, and that its default applies only if there is no other source.
func TestSources(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]config.Source{
		"":                                    {{Directory: "/etc/tools"}},
		"[tools]\nscripts = true":             {{Directory: "/etc/tools", Scripts: true}},
		"[[source]]\ndirectory = '/srv/acme'": {{Directory: "/srv/acme"}},
		"[tools]\nscripts = true\n[[source]]\ndirectory = 'acme'\n[[source]]\ndirectory = '../b'\nscripts = true":                                                                        {{Directory: "/etc/acme"}, {Directory: "/b", Scripts: true}},
		"[[source]]\nname = 'a'\ndirectory = '/a'\nnamespaces = ['acme', 'web/v2', '']\nprefix = 'acme'":                                                                                 {{Name: "a", Directory: "/a", Namespaces: []string{"acme", "web/v2", ""}, Prefix: "acme"}},
		"[[source]]\noci = 'oci://ghcr.io/acme/csv'\ntag = '~1.2'\nca = 'ca.pem'\ncredentials = '/k.json'\nplain_http = true\nmirrors = ['oci://b.example/x/csv', 'c.example:5000/csv']": {{OCI: "ghcr.io/acme/csv", Mirrors: []string{"b.example/x/csv", "c.example:5000/csv"}, Tag: "~1.2", CA: "/etc/ca.pem", Credentials: "/k.json", PlainHTTP: true}},
		"[[source]]\noci = 'ghcr.io/acme/csv'\ntag = '1'\nnamespaces = ['a']\n[[source]]\noci = 'ghcr.io/acme/web'\ntag = '1'\nnamespaces = ['a']":                                       {{OCI: "ghcr.io/acme/csv", Tag: "1", Namespaces: []string{"a"}}, {OCI: "ghcr.io/acme/web", Tag: "1", Namespaces: []string{"a"}}},
		"[[source]]\ndirectory = 'acme'\n[tools]\ndirectory = 'tools'":                                                                                                                   {{Directory: "/etc/tools"}, {Directory: "/etc/acme"}},
		"[[source]]\noci = 'ghcr.io/acme/csv'\ntag = '1'\nminimum = '1.2.0'\n[[source.signer]]\nkey = 'acme.pub'\n[[source.signer]]\nissuer = 'https://a.example'\nsubject = 'ann@example.com'\nroot = 'root.json'": {{
			OCI: "ghcr.io/acme/csv", Tag: "1", Minimum: "1.2.0",
			Signers: []config.Signer{{Key: "/etc/acme.pub"}, {Issuer: "https://a.example", Subject: "ann@example.com", Root: "/etc/root.json"}},
		}},
	} {
		c, err := config.Parse([]byte(text), "/etc")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := configured.Sources(c); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

// TestSourcesNeedRestart checks that a reload reports changed sources.
func TestSourcesNeedRestart(t *testing.T) {
	t.Parallel()
	before, now := parse(t, "[[source]]\ndirectory = '/a'"), parse(t, "[[source]]\ndirectory = '/a'\nscripts = true")
	if got := configured.NeedRestart(before, now); !reflect.DeepEqual(got, []string{"source"}) {
		t.Errorf("got %q", got)
	}
	if got := configured.NeedRestart(now, now); got != nil {
		t.Errorf("the same: got %q", got)
	}
	// Keys of a registry that take effect at a reload need no restart.
	registry := "[[source]]\noci = 'a.example/csv'\ntag = '1'\n"
	before = parse(t, "[[source]]\ndirectory = '/a'\n"+registry)
	now = parse(t, "[[source]]\ndirectory = '/a'\n"+registry+"mirrors = ['b.example/csv']\nplain_http = true\nca = '/ca'\ncredentials = '/k'\nminimum = '1'\n[[source.signer]]\nkey = '/p'")
	now.Sources[1].Locked = "sha256:00"
	if got := configured.NeedRestart(before, now); got != nil {
		t.Errorf("a registry's: got %q", got)
	}
	for text, want := range map[string]string{
		"[[source]]\ndirectory = '/b'\n" + registry:                                   "/a went, /b came",
		"[[source]]\ndirectory = '/a'\nscripts = true\n" + registry:                   "/a has changed",
		"[[source]]\ndirectory = '/a'\n" + strings.Replace(registry, "'1'", "'2'", 1): "oci://a.example/csv:1 went, oci://a.example/csv:2 came",
		registry + "[[source]]\ndirectory = '/a'":                                     "their order",
	} {
		now := parse(t, text)
		if got := configured.NeedRestart(before, now); !reflect.DeepEqual(got, []string{"source"}) {
			t.Errorf("%s: got %q", text, got)
		}
		if got := strings.Join(configured.SourcesOfRestart(before, now), ", "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestWrongSources names what is wrong with a source, and where.
func TestWrongSources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no directory":                    {"name = 'a'", "2:3: source[0]: directory, oci or bucket is missing"},
		"two kinds":                       {"directory = '/a'\noci = 'ghcr.io/acme/csv'", "source[0].oci: can't be combined with directory"},
		"three kinds":                     {"bucket = 'a'\ndirectory = '/a'", "source[0].bucket: can't be combined with directory or oci"},
		"a bucket's tag":                  {"bucket = 'a'\ntag = '1'", "source[0].tag: is for registries"},
		"a bucket alone":                  {"bucket = 'a'", "source[0].bucket: is in the NATS that has the state: also set url in [state]"},
		"a bucket twice":                  {"bucket = 'a'\n[[source]]\nbucket = 'a'", "source[1].bucket: is listed twice"},
		"a bucket's name":                 {"bucket = 'a.b'", "source[0].bucket: must be 1 to 32 of the characters"},
		"a pattern's name":                {"bucket = '*'", "source[0].bucket: must be 1 to 32 of the characters"},
		"no bucket":                       {"bucket = ''", "source[0].bucket: must be 1 to 32 of the characters"},
		"no tag":                          {"oci = 'ghcr.io/acme/csv'", "source[0]: tag is missing"},
		"a tag in the name":               {"oci = 'ghcr.io/acme/csv:1.2'", "source[0].oci: has a tag or a digest: write that with the key tag"},
		"no repository":                   {"oci = 'csv'\ntag = '1'", "source[0].oci: is not a repository"},
		"a password":                      {"oci = 'ann:pass@ghcr.io/acme/csv'\ntag = '1'", "source[0].oci: is not a repository"},
		"a tag with a space":              {"oci = 'ghcr.io/acme/csv'\ntag = '1 2'", "source[0].tag: is not a tag"},
		"an empty tag":                    {"oci = 'ghcr.io/acme/csv'\ntag = ''", "source[0].tag: is not a tag"},
		"a range":                         {"oci = 'ghcr.io/acme/csv'\ntag = '~x'", "source[0].tag: is not a range of versions"},
		"a short digest":                  {"oci = 'ghcr.io/acme/csv'\ntag = 'sha256:abc'", "source[0].tag: is not a supported digest"},
		"scripts of one":                  {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nscripts = true", "source[0].scripts: is for directories"},
		"a tag for a folder":              {"directory = '/a'\ntag = '1'", "source[0].tag: is for registries"},
		"one artifact twice":              {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source]]\noci = 'oci://ghcr.io/acme/csv'\ntag = '1'", "source[1].oci: is listed twice"},
		"a name":                          {"name = 'a b'", "source[0].name: is not a valid name"},
		"an empty name":                   {"name = ''", "source[0].name: is not a valid name"},
		"two sources with one name":       {"name = 'a'\ndirectory = '/a'\n[[source]]\nname = 'a'\ndirectory = '/b'", "source[1].name: is the name of two sources"},
		"no mirror":                       {"oci = 'a.example/csv'\ntag = '1'\nmirrors = []", `source[0].mirrors: is empty: name a repository such as "mirror.example.com/acme/csv"`},
		"a mirror's tag":                  {"oci = 'a.example/csv'\ntag = '1'\nmirrors = ['b.example/csv:1']", "source[0].mirrors[0]: has a tag or a digest"},
		"an invalid name of a mirror":     {"oci = 'a.example/csv'\ntag = '1'\nmirrors = ['https://b.example']", "source[0].mirrors[0]: is not a repository"},
		"a mirror twice":                  {"oci = 'a.example/csv'\ntag = '1'\nmirrors = ['b.example/csv', 'b.example/csv']", "source[0].mirrors[1]: is listed twice"},
		"a mirror of itself":              {"oci = 'a.example/csv'\ntag = '1'\nmirrors = ['b.example/csv', 'a.example/csv']", "source[0].mirrors[1]: is the repository itself"},
		"many mirrors":                    {"oci = 'a.example/csv'\ntag = '1'\nmirrors = ['b.example/1', 'b.example/2', 'b.example/3', 'b.example/4', 'b.example/5', 'b.example/6']", "source[0].mirrors: there are 6 mirrors; at most 5"},
		"a directory's mirror":            {"directory = '/a'\nmirrors = ['b.example/csv']", "source[0].mirrors: is for registries"},
		"nothing served":                  {"directory = '/a'\nnamespaces = []", "source[0].namespaces: is empty, so nothing would be served"},
		"a pattern":                       {"directory = '/a'\nnamespaces = ['b', 'acme/*']", "source[0].namespaces[1]: is a pattern: write just the namespace"},
		"everything":                      {"directory = '/a'\nnamespaces = ['*']", `source[0].namespaces[0]: namespace "*":`},
		"a slash":                         {"directory = '/a'\nnamespaces = ['/acme']", "source[0].namespaces[0]: namespace"},
		"dots":                            {"directory = '/a'\nnamespaces = ['acme/..']", "source[0].namespaces[0]: namespace"},
		"no list":                         {"directory = '/a'\nnamespaces = 'acme'", "source[0].namespaces: must be a list"},
		"an empty prefix":                 {"directory = '/a'\nprefix = ''", "source[0].prefix: must not be empty"},
		"a prefix":                        {"directory = '/a'\nprefix = 'a//b'", "source[0].prefix: namespace"},
		"a prefix elsewhere":              {"directory = '/a'\nprefix = 'web'\nnamespaces = ['', 'acme', 'webs']", "source[0].prefix: is in none of its namespaces"},
		"several wrong":                   {"directory = '/a'\nnamespaces = ['b', '/c', 7, 'D//']", "source[0].namespaces[2]: must be a string"},
		"the last wrong":                  {"directory = '/a'\nnamespaces = ['b', '/c', 7, 'D//']", "source[0].namespaces[3]: namespace"},
		"equal claims":                    {"name = 'a'\ndirectory = '/a'\nnamespaces = ['pay']\n[[source]]\ndirectory = '/b'\nnamespaces = ['b', 'pay']", `source[1].namespaces[1]: the namespace "pay" is also among source[0].namespaces (a), but a namespace belongs to one source`},
		"of no namespace":                 {"directory = '/a'\nnamespaces = ['']\n[[source]]\noci = 'ghcr.io/acme/csv'\ntag = '1'\nnamespaces = ['']", `the empty namespace is also among source[0].namespaces (/a)`},
		"elsewhere":                       {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nnamespaces = ['a']\n[[source]]\noci = 'ghcr.io/evil/csv'\ntag = '1'\nnamespaces = ['a']", "source[1].namespaces[0]: "},
		"the third":                       {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nnamespaces = ['a']\n[[source]]\noci = 'ghcr.io/acme/web'\ntag = '1'\nnamespaces = ['a']\n[[source]]\nbucket = 'b'\nnamespaces = ['a']", "source[2].namespaces[0]: "},
		"many namespaces":                 {"directory = '/a'\nnamespaces = ['x'" + strings.Repeat(", 'x'", 100) + "]", "source[0].namespaces: there are 101 namespaces; at most 100 are allowed"},
		"a signer for a folder":           {"directory = '/a'\n[[source.signer]]\nkey = 'k'", "source[0].signer: is for registries"},
		"a signer for a digest":           {"oci = 'ghcr.io/acme/csv'\ntag = 'sha256:" + strings.Repeat("0", 64) + "'\n[[source.signer]]\nkey = 'k'", "source[0].signer: makes no sense with a digest"},
		"a minimum alone":                 {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nminimum = '1.0.0'", "source[0].minimum: needs a signer"},
		"a minimum that is not a version": {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nminimum = 'new'\n[[source.signer]]\nkey = 'k'", "source[0].minimum: is not a version"},
		"no signers":                      {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nsigner = []", "source[0].signer: is empty"},
		"a signer":                        {"oci = 'ghcr.io/acme/csv'\ntag = '1'\nsigner = 'ann'", "source[0].signer: each source.signer is a table of its own: write [[source.signer]] above its keys"},
		"nobody":                          {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]", "source[0].signer[0]: a signer needs a key, or an issuer"},
		"an empty key":                    {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]\nkey = ''", "source[0].signer[0].key: must not be empty"},
		"an empty issuer":                 {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]\nissuer = ''\nsubject = 's'\nroot = 'r'", "source[0].signer[0].issuer: must not be empty"},
		"no subject":                      {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]\nissuer = 'i'\nroot = 'r'", "source[0].signer[0]: an identity needs its subject"},
		"anybody":                         {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]\nissuer = 'i'\nsubject = '*'\nroot = 'r'", "source[0].signer[0].subject: has a * that stands for anybody"},
		"a key and an issuer":             {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]\nkey = 'k'\nissuer = 'i'", "source[0].signer[0]: a signer is either a key, or an identity"},
		"an unknown key":                  {"oci = 'ghcr.io/acme/csv'\ntag = '1'\n[[source.signer]]\nkye = 'k'", "source[0].signer[0]"},
	} {
		if _, err := config.Parse([]byte("\n[[source]]\n"+c.text), ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
