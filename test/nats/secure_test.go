package nats_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
)

// account adds an account with some room on disk to a node, and returns a file with a user's credentials.
func account(t *testing.T, o *server.Options, room int64) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	keys := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		pair, err := make()
		must(err)
		public, err := pair.PublicKey()
		must(err)
		return pair, public
	}
	operator, operatorID := keys(nkeys.CreateOperator)
	of, ofID := keys(nkeys.CreateAccount)
	system, systemID := keys(nkeys.CreateAccount)
	user, userID := keys(nkeys.CreateUser)
	_ = system

	claims := jwt.NewAccountClaims(ofID)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: room, MemoryStorage: 64 << 20, Streams: 10, Consumer: 100}
	text, err := claims.Encode(operator)
	must(err)
	systemText, err := jwt.NewAccountClaims(systemID).Encode(operator)
	must(err)
	operatorText, err := jwt.NewOperatorClaims(operatorID).Encode(operator)
	must(err)
	trusted, err := jwt.DecodeOperatorClaims(operatorText)
	must(err)
	resolver := &server.MemAccResolver{}
	must(resolver.Store(ofID, text))
	must(resolver.Store(systemID, systemText))
	o.TrustedOperators, o.AccountResolver, o.SystemAccount = []*jwt.OperatorClaims{trusted}, resolver, systemID

	userText, err := jwt.NewUserClaims(userID).Encode(of)
	must(err)
	seed, err := user.Seed()
	must(err)
	creds, err := jwt.FormatUserConfig(userText, seed)
	must(err)
	file := filepath.Join(t.TempDir(), "user.creds")
	must(os.WriteFile(file, creds, 0o600))
	return file
}

// TestCredentials checks that a state opens with credentials, and fails at once without them, or with those of another account.
func TestCredentials(t *testing.T) {
	t.Parallel()
	var file string
	c := start(t, 1, func(o *server.Options) { file = account(t, o, 64<<20) })
	s := open(t, c, func(o *nats.Options) { o.Credentials = file })
	if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); err != nil {
		t.Error(err)
	}
	other := account(t, &server.Options{}, 0)
	empty := filepath.Join(t.TempDir(), "empty.creds")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ file, want string }{
		"none":             {"", "Authorization"},
		"another operator": {other, "Authorization"},
		"no such file":     {"/nowhere/user.creds", "read the credentials"},
		"a folder":         {"/", "read the credentials: read /: it is not a regular file"},
		"no credentials":   {empty, "nats:"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		began := time.Now()
		s, err := nats.Open(ctx, nats.Options{URL: c.url(), Prefix: "toolsrv", Credentials: test.file})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v after %v, want %q", name, err, time.Since(began), test.want)
		}
		cancel()
	}
}

// TestFullAccount fills an account's room on disk: writes fail with the reason, and reads continue.
func TestFullAccount(t *testing.T) {
	t.Parallel()
	var file string
	c := start(t, 1, func(o *server.Options) { file = account(t, o, 1<<20) })
	s := open(t, c, func(o *nats.Options) { o.Credentials = file })
	space := s.Space("a")
	var failed error
	made := 0
	for ; failed == nil && made < 1000; made++ {
		_, failed = space.Set(t.Context(), fmt.Sprint(made), make([]byte, 15<<10), state.Any, state.SetOptions{})
	}
	if !errors.Is(failed, state.ErrUnavailable) || !strings.Contains(failed.Error(), "NATS refuses the change") {
		t.Fatalf("after %d values: %v", made, failed)
	}
	if e, ok, err := space.Get(t.Context(), "0", 16<<10); err != nil || !ok || len(e.Value) != 15<<10 {
		t.Errorf("read %d bytes, %t, %v", len(e.Value), ok, err)
	}
	if u, err := space.Usage(t.Context()); err != nil || u.Entries != int64(made-1) {
		t.Errorf("the space holds %+v, %v, and %d values were set", u, err, made-1)
	}
}

// TestTLS opens a state over mutual TLS, which fails with a certificate that the other side does not trust.
func TestTLS(t *testing.T) {
	t.Parallel()
	known, other, dir := certtest.NewAuthority(t, "known"), certtest.NewAuthority(t, "other"), t.TempDir()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(known.PEM)
	c := start(t, 1, func(o *server.Options) {
		o.TLS = true
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{known.Pair(nil)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	})
	files := func(name string, a *certtest.Authority) (ca, certificate, key string) {
		text, secret := a.Issue(nil)
		return certtest.Write(t, dir, name+"-ca.pem", a.PEM), certtest.Write(t, dir, name+".pem", text), certtest.Write(t, dir, name+"-key.pem", secret)
	}
	ca, certificate, key := files("known", known)
	otherCA, otherCertificate, otherKey := files("other", other)
	for _, test := range []struct {
		name, ca, certificate, key string
		ok                         bool
	}{
		{"all", ca, certificate, key, true},
		{"no certificate", ca, "", "", false},
		{"a certificate from another authority", ca, otherCertificate, otherKey, false},
		{"a server from another authority", otherCA, certificate, key, false},
		{"an authority that the system does not trust", "", certificate, key, false},
		{"another one's key", ca, certificate, otherKey, false},
		{"no certificates in the file", key, certificate, key, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if test.ok {
			ctx = t.Context()
		}
		s, err := nats.Open(ctx, nats.Options{URL: "tls" + strings.TrimPrefix(c.url(), "nats"), Prefix: "toolsrv", CA: test.ca, Certificate: test.certificate, Key: test.key})
		if (err == nil) != test.ok {
			t.Errorf("%s: got the error %v", test.name, err)
		}
		if err == nil {
			if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			s.Close()
		}
		cancel()
	}
}

// TestFull fills a bucket, and then an account, with a tool's values, which are large or small. Even then, operators can still revoke
// tokens and switch tools off, and deleting values makes room.
func TestFull(t *testing.T) {
	for of, nodes := range map[string]int{"bucket": 3, "account": 1} {
		for _, size := range []int{15 << 10, 1} {
			t.Run(fmt.Sprintf("%s, values of %d bytes", of, size), func(t *testing.T) {
				t.Parallel()
				full(t, nodes, of == "account", size)
			})
		}
	}
}

func full(t *testing.T, nodes int, ofAccount bool, size int) {
	const room = 512 << 10
	var file string
	c := start(t, nodes, func(o *server.Options) {
		if ofAccount {
			file = account(t, o, room)
		}
	})
	as := func(o *nats.Options) { o.Credentials = file }
	s := open(t, c, as)
	set := func(space state.Space, key string, value []byte, quota state.Usage) error {
		_, err := space.Set(t.Context(), key, value, state.Any, state.SetOptions{Quota: quota})
		return err
	}
	if err := set(s.Space("tokens"), "ann", []byte("\x01{}"), state.Usage{}); err != nil {
		t.Fatal(err)
	}
	if !ofAccount {
		js, _ := raw(t, c)
		stream, err := js.Stream(t.Context(), "KV_toolsrv")
		if err != nil {
			t.Fatal(err)
		}
		config := stream.CachedInfo().Config
		config.MaxBytes = room
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		// An open state learns of the limit within seconds, in which the bucket could be filled. A new one knows it.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, c, as)
	}
	tokens, tool := s.Space("tokens"), s.Space("kv/math")
	quota := state.Usage{Bytes: 100 << 20, Entries: 100_000}
	made := make(chan string, 200_000)
	var fill sync.WaitGroup
	for i := range 16 {
		fill.Go(func() {
			for n, failures := 0, 0; failures < 3; n++ { // smaller values follow, so that even the last bytes are used
				key := fmt.Sprint(i, "/", n)
				err := set(tool, key, make([]byte, size), quota)
				switch {
				case err == nil:
					made <- key
				case !errors.Is(err, state.ErrUnavailable), n > 10_000:
					t.Error(err)
					return
				default:
					failures++
				}
			}
		})
	}
	fill.Wait()
	t.Logf("%d values", len(made))
	for i := range 20 { // each operation also adds to the audit
		if err := set(s.Space("audit"), fmt.Sprint(i), make([]byte, 300), state.Usage{}); err != nil {
			t.Fatalf("entry %d of the audit: %v", i, err)
		}
		if err := set(s.Space("switches"), "math", fmt.Appendf(nil, "\x01%d", i), state.Usage{}); err != nil {
			t.Fatalf("switch %d: %v", i, err)
		}
	}
	if deleted, err := tokens.Delete(t.Context(), "ann", state.Any); err != nil || !deleted {
		t.Errorf("a token was revoked: %t, %v", deleted, err)
	}
	for range min(100, len(made)) {
		if deleted, err := tool.Delete(t.Context(), <-made, state.Any); err != nil || !deleted {
			t.Fatalf("a key was deleted: %t, %v", deleted, err)
		}
	}
	if size > 1000 { // otherwise the markers take the freed room for an hour
		eventually(t, "there is room again", func() bool { return set(tool, "again", make([]byte, size), quota) == nil })
	}
}
