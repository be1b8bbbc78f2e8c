package secret_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
)

// A memory is that of a guest.
type memory []byte

func (m memory) Size() uint32 { return uint32(len(m)) }
func (m memory) Read(offset, length uint32) ([]byte, bool) {
	if uint64(offset)+uint64(length) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+length], true
}

// A host notes uses.
type host struct {
	hostabi.Host // nil: what is not used here
	used         []hostabi.Use
}

func (*host) Look()                                  {}
func (*host) Wait(f func(context.Context))           { f(context.Background()) }
func (*host) Ends() time.Time                        { return time.Time{} }
func (*host) Output([]byte, bool)                    {}
func (*host) Fail([]byte)                            {}
func (*host) Log(slog.Level, string, []byte) bool    { return true }
func (*host) Progress(float64, float64, []byte) bool { return false }
func (h *host) Used(u hostabi.Use)                   { h.used = append(h.used, u) }
func (*host) Hold(int64)                             {}
func (*host) Descriptor(int64) bool                  { return true }

// ask has a guest with a grant read the secret with that name, and returns what it is answered.
func ask(grant any, name string, serving bool) (answer string, failed bool, used []hostabi.Use) {
	h, m := &host{}, make(memory, 64<<10)
	copy(m, name)
	c := hostabi.NewCall(h, hostabi.Guest{Memory: m, Sets: 1})
	run := hostabi.Run{Serving: serving}
	if serving && grant != nil {
		run.Grants = []any{grant}
	}
	c.Begin(run)
	set := secret.Set()
	stack := []uint64{0, uint64(len(name))}
	c.Invoke(&set.Functions[0], 0, stack)
	n := int32(uint32(stack[0]))
	c.Invoke(&set.Functions[1], 0, []uint64{1 << 10})
	if n < 0 {
		return string(m[1<<10 : 1<<10-int(n)]), true, h.used
	}
	return string(m[1<<10 : 1<<10+int(n)]), false, h.used
}

// TestReadSecret has tools ask for secrets that they were granted, and for others.
func TestReadSecret(t *testing.T) {
	t.Parallel()
	dir := private(t)
	testkit.Put(t, dir, "mine", "my own secret")
	testkit.Put(t, dir, "other", "another's secret")
	s, _ := read(t, secret.Sources{Directory: dir})
	grant := secret.NewGrant(s, "mine", "gone")
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
		{"bytes that are no text", "\xff\x00", grant, true, `"not_granted"`, "not_granted"},
		{"gone meanwhile", "gone", grant, true, "is gone", "unavailable"},
		{"no grant", "mine", nil, true, "does not declare that it needs secrets", "not_granted"},
		{"a start", "mine", grant, false, "while it starts", "not_granted"},
	} {
		got, failed, used := ask(c.grant, c.secret, c.serving)
		if failed != (c.outcome != "") || !strings.Contains(got, c.want) || strings.Contains(got, "another's") {
			t.Errorf("%s: got %.300s, failed %t, want %s", c.name, got, failed, c.want)
		}
		if len(used) != 1 || used[0].Outcome != c.outcome || used[0].Received != 0 || len(used[0].Target) > 64 {
			t.Errorf("%s: counted %+v", c.name, used)
		}
	}
	testkit.Put(t, dir, "mine", "my next secret")
	v, _, err := secret.Read(secret.Sources{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.Replace(v)
	if got, _, _ := ask(grant, "mine", true); got != "my next secret" {
		t.Errorf("after it was replaced, the secret is %q", got)
	}
	if got := string(grant.Filter([]byte("my next secret, my own secret, another's secret"))); got != "[secret], [secret], another's secret" {
		t.Errorf("said %q", got)
	}
	if !grant.Equal(secret.NewGrant(s, "mine", "gone")) || grant.Equal(secret.NewGrant(s, "mine")) || grant.Equal(secret.NewGrant(secret.NewStore(v), "mine", "gone")) || grant.Equal(7) {
		t.Error("grants are compared wrongly")
	}
}

// TestRefusalsAreCharged has a guest ask for secrets that it may not have, and for a long one: each costs what it takes the host.
func TestRefusalsAreCharged(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", 60<<10)
	dir := private(t)
	testkit.Put(t, dir, "long", long)
	s, _ := read(t, secret.Sources{Directory: dir})
	grant := secret.NewGrant(s, "long")
	for _, test := range []struct {
		name, secret string
		least        int64
	}{
		{"a long name", strings.Repeat("\"", 30_000), 3000},
		{"bytes that are no text", strings.Repeat("\xff", 30_000), 3000},
		{"a short name", "a", 2000},
		{"a long secret", "long", int64(len(long)) / 4},
	} {
		m := make(memory, 64<<10)
		copy(m, test.secret)
		c := hostabi.NewCall(&host{}, hostabi.Guest{Memory: m, Sets: 1})
		c.Begin(hostabi.Run{Serving: true, Grants: []any{grant}})
		stack := []uint64{0, uint64(len(test.secret))}
		c.Invoke(&secret.Set().Functions[0], 0, stack)
		if got := c.Spent(); got < test.least {
			t.Errorf("%s: %d ns were charged, want %d at least", test.name, got, test.least)
		}
		if n := int32(uint32(stack[0])); n < -1000 {
			t.Errorf("%s: the failure has %d bytes", test.name, -n)
		}
	}
}
