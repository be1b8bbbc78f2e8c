package secrets_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
)

// read returns the secrets of a directory.
func read(t *testing.T, dir string) *secret.Values {
	t.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	v, _, err := secret.Read(secret.Sources{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask makes a guest with a grant read a secret, and returns the guest's answer.
func ask(t *testing.T, grant any, name string, serving bool) (answer string, failed bool, used []hostcall.Use) {
	run := hostcall.Run{Serving: serving}
	if serving && grant != nil {
		run.Grants = []any{grant}
	}
	g := hosttest.Begin(t, make([]byte, 64<<10), 1, run)
	copy(g.Memory, name)
	set := secrets.Set()
	n := int32(uint32(g.Do(&set.Functions[0], 0, 0, uint64(len(name)))))
	g.Do(&set.Functions[1], 0, 1<<10)
	if n < 0 {
		return string(g.Memory[1<<10 : 1<<10-int(n)]), true, g.Uses
	}
	return string(g.Memory[1<<10 : 1<<10+int(n)]), false, g.Uses
}

// TestReadSecret makes tools read secrets that they were granted, and others.
// Proves: Secrets stay secret
func TestReadSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "mine", "my own secret")
	testkit.Put(t, dir, "other", "another's secret")
	v := read(t, dir)
	store := secret.NewStore(nil)
	store.Add(v)
	view := secret.NewView(store, v)
	grant := secrets.NewPermission(view, "mine", "gone")
	for _, c := range []struct {
		name, secret  string
		grant         any
		serving       bool
		want, outcome string
	}{
		{"granted", "mine", grant, true, "my own secret", ""},
		{"not granted", "other", grant, true, `does not declare that it needs the secret \"other\"`, "not_granted"},
		{"a prefix", "min", grant, true, `"not_granted"`, "not_granted"},
		{"nothing", "", grant, true, `"not_granted"`, "not_granted"},
		{"a long name", strings.Repeat("mine", 10_000), grant, true, `"not_granted"`, "not_granted"},
		{"bytes that are not text", "\xff\x00", grant, true, `"not_granted"`, "not_granted"},
		{"gone meanwhile", "gone", grant, true, "no longer exists", "unavailable"},
		{"no grant", "mine", nil, true, "does not declare that it needs secrets", "not_granted"},
		{"a start", "mine", grant, false, "while it starts", "not_granted"},
	} {
		got, failed, used := ask(t, c.grant, c.secret, c.serving)
		if failed != (c.outcome != "") || !strings.Contains(got, c.want) || strings.Contains(got, "another's") {
			t.Errorf("%s: got %.300s, failed %t, want %s", c.name, got, failed, c.want)
		}
		if len(used) != 1 || used[0].Outcome != c.outcome || used[0].Received != 0 || len(used[0].Target) > 64 {
			t.Errorf("%s: counted %+v", c.name, used)
		}
	}
	testkit.Put(t, dir, "mine", "my next secret")
	v = read(t, dir)
	store.Add(v)
	view.Extend(v)
	if got, _, _ := ask(t, grant, "mine", true); got != "my next secret" {
		t.Errorf("after it was replaced, the secret is %q", got)
	}
	if got := string(grant.Filter([]byte("my next secret, my own secret, another's secret"), nil)); got != "[secret], [secret], another's secret" {
		t.Errorf("said %q", got)
	}
	if !grant.Equal(secrets.NewPermission(view, "mine", "gone")) || grant.Equal(secrets.NewPermission(view, "mine")) || grant.Equal(secrets.NewPermission(secret.NewView(secret.NewStore(nil), v), "mine", "gone")) || grant.Equal(7) {
		t.Error("grants are compared wrongly")
	}
}

// TestRefusalsAreCharged makes a guest read secrets that it may not see, and a long one: each read is charged what it costs the host.
// Proves: A tool stops
func TestRefusalsAreCharged(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", 60<<10)
	dir := t.TempDir()
	testkit.Put(t, dir, "long", long)
	v := read(t, dir)
	store := secret.NewStore(nil)
	store.Add(v)
	view := secret.NewView(store, v)
	grant := secrets.NewPermission(view, "long")
	for _, test := range []struct {
		name, secret string
		least        int64
	}{
		{"a long name", strings.Repeat("\"", 30_000), 3000},
		{"bytes that are not text", strings.Repeat("\xff", 30_000), 3000},
		{"a short name", "a", 2000},
		{"a long secret", "long", int64(len(long)) / 4},
	} {
		g := hosttest.Begin(t, make([]byte, 64<<10), 1, hostcall.Run{Serving: true, Grants: []any{grant}})
		copy(g.Memory, test.secret)
		n := int32(uint32(g.Do(&secrets.Set().Functions[0], 0, 0, uint64(len(test.secret)))))
		if got := g.Charged(); got < test.least {
			t.Errorf("%s: %d ns were charged, want %d at least", test.name, got, test.least)
		}
		if n < -1000 {
			t.Errorf("%s: the failure has %d bytes", test.name, -n)
		}
	}
}
