package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
)

// TestStateInNATS reads the keys for a state in NATS.
func TestStateInNATS(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("[state]\nurl = 'nats://a,b:4223,[::1]:4222'\ncredentials = 'a.creds'\nserver_ca = 'ca.pem'\ncertificate = 'c.pem'\nkey = '/k.pem'\nprefix = 'tools_2'\n"), "here")
	if err != nil {
		t.Fatal(err)
	}
	s := c.State
	if s.URL != "nats://a,b:4223,[::1]:4222" || s.Credentials != filepath.Join("here", "a.creds") || s.CA != filepath.Join("here", "ca.pem") || s.Certificate != filepath.Join("here", "c.pem") || filepath.ToSlash(s.Key) != "/k.pem" || s.Prefix != "tools_2" || s.Directory != "" {
		t.Errorf("got %+v", s)
	}
	if got := config.Default().State.Prefix; got != "toolsrv" {
		t.Errorf("the bucket is %q by default", got)
	}
	for _, test := range []struct{ name, text, want string }{
		{"a directory, too", "url = 'nats://a'\ndirectory = '/var/lib/toolsrv'", "state.directory: can't be combined with url"},
		{"no scheme", "url = 'a:4222'", "must begin with nats:// or tls://"},
		{"another scheme", "url = 'https://a'", "must begin with nats:// or tls://"},
		{"no host", "url = 'nats://'", "is not a list of hosts"},
		{"an empty host", "url = 'nats://a,,b'", "is not a list of hosts"},
		{"a second scheme", "url = 'nats://a,nats://b'", "is not a list of hosts"},
		{"a path", "url = 'nats://a/hunter2'", "is not a list of hosts"},
		{"a query", "url = 'nats://a?hunter2'", "is not a list of hosts"},
		{"a password", "url = 'nats://me:hunter2@a'", "has a user or password: put credentials into a file"},
		{"a token", "url = 'nats://hunter2@a'", "has a user or password"},
		{"a line break", "url = \"nats://a\\nhunter2\"", "is not a list of hosts"},
		{"many", "url = 'nats://" + strings.Repeat("a,", 16) + "a'", "names 17 servers; at most 16 are allowed"},
		{"a number", "url = 4222", "must be addresses such as"},
		{"credentials without url", "credentials = 'a'", "are for NATS: set url, too"},
		{"a certificate without key", "url = 'nats://a'\ncertificate = 'a'", "certificate and key belong together"},
		{"a key without certificate", "url = 'nats://a'\nkey = 'a'", "certificate and key belong together"},
		{"a prefix with a dot", "url = 'nats://a'\nprefix = 'a.b'", "must be 1 to 32 of the characters"},
		{"a prefix with an asterisk", "url = 'nats://a'\nprefix = '*'", "must be 1 to 32 of the characters"},
		{"no prefix", "url = 'nats://a'\nprefix = ''", "must be 1 to 32 of the characters"},
		{"a long prefix", "url = 'nats://a'\nprefix = '" + strings.Repeat("a", 33) + "'", "must be 1 to 32 of the characters"},
	} {
		_, err := config.Parse([]byte("[state]\n"+test.text), "")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the value: %v", test.name, err)
		}
	}
}
