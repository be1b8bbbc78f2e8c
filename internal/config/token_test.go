package config_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of "secret"

func TestDeclaredTokens(t *testing.T) {
	t.Parallel()
	c := parse(t, `
[[auth.token]]
name = "ci"
sha256 = "`+digest+`"
scopes = ["math/*", "admin:read"]
expires = 2027-01-31T18:00:00+02:00
networks = ["10.0.0.0/8", "fd00::/8"]
rate = "100/min"
burst = 7
concurrent = 3
[[auth.token]]
name = "grafana@example.com"
file = "grafana.token"
expires = 2027-01-31
`)
	want := []config.Token{
		{Name: "ci", Scopes: []string{"math/*", "admin:read"}, Expires: c.Auth.Declared[0].Expires, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
			Rate: wasmtools.Rate{Calls: 100, Period: time.Minute, Burst: 7, Concurrent: 3}},
		{Name: "grafana@example.com", File: "dir/grafana.token", Scopes: c.Auth.Declared[1].Scopes, Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)},
	}
	raw, _ := hex.DecodeString(digest)
	copy(want[0].SHA256[:], raw)
	if !reflect.DeepEqual(c.Auth.Declared, want) || !want[0].Expires.Equal(time.Date(2027, 1, 31, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v, want %+v", c.Auth.Declared, want)
	}
}

// TestBadDeclaredTokens checks the error for each mistake. No error shows a value that may be a token.
// Proves: Secrets stay secret
func TestBadDeclaredTokens(t *testing.T) {
	t.Parallel()
	const head = "[[auth.token]]\nname = 'ci'\n"
	const good = head + "sha256 = '" + digest + "'\n"
	for name, test := range map[string]struct{ text, want string }{
		"no name":                              {"[[auth.token]]\nsha256 = '" + digest + "'", "auth.token[0]: name is missing"},
		"no secret":                            {head, "auth.token[0]: a token has either sha256"},
		"both secrets":                         {good + "file = 'x'", "auth.token[0]: a token has either sha256"},
		"the token in place of its digest":     {head + "sha256 = 'zqzqzqzq'", "auth.token[0].sha256: is not a SHA-256"},
		"other letters":                        {head + "sha256 = '" + strings.Repeat("zq", 32) + "'", "auth.token[0].sha256: is not a SHA-256"},
		"a number":                             {head + "sha256 = 7", "auth.token[0].sha256: "},
		"a token in place of a name":           {"[[auth.token]]\nname = 'tsv_zqzq'\nsha256 = '" + digest + "'", "auth.token[0].name: the name begins with tsv_"},
		"a bad name":                           {"[[auth.token]]\nname = 'zq zq'\nsha256 = '" + digest + "'", "auth.token[0].name: the name is not valid"},
		"two tokens with one name":             {good + head + "file = 'x'", "auth.token[1].name: is the name of two tokens"},
		"two tokens with one digest":           {good + "[[auth.token]]\nname = 'web'\nsha256 = '" + digest + "'", "auth.token[1].sha256: is the digest of two tokens"},
		"an unknown role":                      {good + "scopes = ['math', 'zqzq:all']", "auth.token[0].scopes[1]: there is no such role: use admin, admin:read or metrics"},
		"a bad pattern":                        {good + "scopes = ['zq zq']", "auth.token[0].scopes[0]: it has a character that is not allowed"},
		"a token in place of a scope":          {good + "scopes = ['" + strings.Repeat("zq", 40) + "']", "auth.token[0].scopes[0]: it has 80 bytes"},
		"too many scopes":                      {good + "scopes = [" + strings.Repeat("'math',", 65) + "]", "there are 65 scopes; at most 64 are allowed"},
		"a word in place of a date":            {good + "expires = 'zqzq'", "auth.token[0].expires: must be a date such as 2027-01-31"},
		"a date and time without a zone":       {good + "expires = 2027-01-31T10:00:00", "auth.token[0].expires: must be a date"},
		"an address in place of a network":     {good + "networks = ['10.0.0.1']", "auth.token[0].networks[0]: is one address: write \"10.0.0.1/32\" for this one alone"},
		"a word in place of a network":         {good + "networks = ['zqzq']", "auth.token[0].networks[0]: is not a range of addresses"},
		"every network":                        {good + "networks = ['::/0']", "auth.token[0].networks[0]: covers all addresses"},
		"an unknown key":                       {good + "scope = ['math']", `unknown key "scope" in [[auth.token]]: did you mean "scopes"?`},
		"a list":                               {"[auth]\ntoken = ['zqzq']", "write [[auth.token]] above its keys"},
		"a table":                              {"[auth.token]\nname = 'zqzq'", "write [[auth.token]] above its keys"},
		"tokens in place of token":             {"[[auth.tokens]]\nname = 'ci'", "auth.tokens: these are tokens without names, such as [\"one\", \"two\"]: write [[auth.token]] for"},
		"a rate that is a number":              {good + "rate = 10", "auth.token[0].rate: must be a rate in quotes such as"},
		"a rate without a unit":                {good + "rate = '10'", "auth.token[0].rate: is not a rate: write a whole number, a slash and a unit, such as 10/s, 100/min or 1000/h"},
		"a rate of zero":                       {good + "rate = '0/s'", "auth.token[0].rate: is not a rate"},
		"a negative rate":                      {good + "rate = '-1/s'", "auth.token[0].rate: is not a rate"},
		"a huge rate":                          {good + "rate = '1000001/s'", "auth.token[0].rate: is more than a rate can be: write at most 1000000/s"},
		"a rate that is not a number":          {good + "rate = nan", "auth.token[0].rate: must be a rate"},
		"a token in place of a rate":           {good + "rate = 'zqzq'", "auth.token[0].rate: is not a rate"},
		"a burst without a rate":               {good + "burst = 5", "auth.token[0].burst: has no effect without rate"},
		"a burst of zero":                      {good + "rate = '1/s'\nburst = 0", "auth.token[0].burst: is out of range: 1 to 1000000 is allowed"},
		"half a burst":                         {good + "rate = '1/s'\nburst = 0.5", "auth.token[0].burst: must be a whole number"},
		"no concurrent calls":                  {good + "concurrent = 0", "auth.token[0].concurrent: is out of range"},
		"a rate in the wrong table":            {"rates.rate = '10/s'", "unknown key"},
		"a rate in place of a table":           {"rates.default = '10/s'", "rates.default: must be a table"},
		"a burst for addresses without a rate": {"rates.anonymous = {burst = 5}", "rates.anonymous.burst: has no effect without rate"},
		"a rate in a rule":                     {"[[auth.certificate]]\nrate = '10/min/s'", "auth.certificate[0].rate: is not a rate"},
		"an empty file name":                   {head + "file = ''", "auth.token[0].file: "},
		"more tables than allowed":             {strings.Repeat("[[auth.token]]\n", 1001), "there are 1001 auth.tokens; at most 1000 are allowed"},
		"the digest of another table":          {good + strings.Replace(good, "'ci'", "'ci2'", 1), "auth.token[1].sha256"},
	} {
		_, err := config.Parse([]byte(test.text), "")
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "zq") {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestTokenFiles reads the files of declared tokens.
// Proves: Secrets stay secret
func TestTokenFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, text, want string }{
		"one":                        {"# of ci\nsecret\n", "", ""},
		"two":                        {"secret\nzqzq\n", "", "auth.token[0].file: the file has 2 tokens"},
		"none":                       {"# later\n", "", "has no token"},
		"nonsense":                   {"zq zq\n", "", "has a space"},
		"missing":                    {"", "", "auth.token[0].file: "},
		"a token for every tool":     {"secret\n", "[auth]\ntokens = ['secret']\n", "the token is also in auth.tokens or auth.tokens_file, whose"},
		"the token of another table": {"secret\n", "[[auth.token]]\nname = 'web'\nsha256 = '" + digest + "'\n", "auth.token[1].file: another table has the same token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if test.file != "" {
				testkit.Put(t, dir, "ci.token", []byte(test.file))
			}
			testkit.Put(t, dir, "toolsrv.toml", []byte(test.text+"[[auth.token]]\nname = 'ci'\nfile = 'ci.token'\n"))
			c, err := config.Load(dir + "/toolsrv.toml")
			switch {
			case test.want == "" && (err != nil || c.Auth.Declared[0].SHA256 != sha256.Sum256([]byte("secret"))):
				t.Errorf("got %v, %v", c, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "zq") || !strings.Contains(err.Error(), "toolsrv.toml:")):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
