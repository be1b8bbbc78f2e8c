package nats_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/tokens"
)

// reads returns the options of a version that can read a form of tokens, and that counts as present for a while.
func reads(form byte, counts time.Duration) func(o *nats.Options) {
	return func(o *nats.Options) { o.Forms, o.FormsFor = map[string]byte{"tokens": form, "audit": 1}, counts }
}

// formOf returns the form in which a store may write tokens.
func formOf(s *nats.Store, known byte) byte { return state.FormOf(s.Space("tokens"), known) }

// set sets a token of a form.
func set(t *testing.T, s *nats.Store, form byte) error {
	_, err := s.Space("tokens").Set(t.Context(), "key", []byte{form, '{', '}'}, state.Any, state.SetOptions{})
	return err
}

// refused checks that a version does not open the state.
func refused(t *testing.T, c *cluster, change func(o *nats.Options)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o := nats.Options{URL: c.url(), Prefix: "toolsrv"}
	change(&o)
	s, err := nats.Open(ctx, o)
	if err == nil {
		_ = s.Close()
	}
	return err
}

// TestUpgrade replaces an older version by a newer one while both use the state, and tries to go back.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	const counts = 3 * time.Second
	old := []*nats.Store{open(t, c, reads(1, counts)), open(t, c, reads(1, counts))}
	young := []*nats.Store{open(t, c, reads(2, counts)), open(t, c, reads(2, counts))}
	until := time.Now().Add(2 * counts)
	for time.Now().Before(until) { // a stopped version counts as present for a shorter time
		for _, s := range young {
			if form := formOf(s, 2); form != 1 {
				t.Fatalf("the newer version may write form %d beside the older one", form)
			}
			if err := set(t, s, 2); !errors.Is(err, state.ErrInvalid) || !strings.Contains(err.Error(), "does not know") {
				t.Fatalf("form 2 is written beside the older version: %v", err)
			}
			if err := set(t, s, 1); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range old {
			if _, _, err := s.Space("tokens").Get(t.Context(), "key", 10); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(counts / 10)
	}
	for _, s := range old {
		_ = s.Close()
	}
	if form := formOf(young[0], 2); form != 1 {
		t.Fatalf("form %d may be written as soon as the older version has stopped", form)
	}
	back := open(t, c, reads(1, counts)) // somebody goes back
	_ = back.Close()
	stopped := time.Now()
	for _, s := range young {
		eventually(t, "the newer form is written", func() bool { return formOf(s, 2) == 2 })
		if after := time.Since(stopped); after < counts/2 {
			t.Errorf("the newer form is written %v after the older version has stopped", after)
		}
		if err := set(t, s, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := refused(t, c, reads(1, counts)); !errors.Is(err, state.ErrNewer) || !strings.Contains(err.Error(), "form is 2, but this version reads 1. Use that version, or a newer one") {
		t.Errorf("the older version starts with the error %v", err)
	}
	if s := open(t, c, reads(3, counts)); formOf(s, 3) != 2 {
		t.Errorf("the newest version may write the form %d", formOf(s, 3))
	}
	_ = young[0].Close()
	if s := open(t, c, reads(2, counts)); formOf(s, 2) != 2 {
		t.Errorf("after a start the form %d may be written", formOf(s, 2))
	}
}

// TestFirstForms checks that a version that is alone from the beginning writes its forms at once. A version that follows versions that
// announced nothing must wait before it writes them.
func TestFirstForms(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	if s := open(t, c, reads(2, time.Hour)); formOf(s, 2) != 2 {
		eventually(t, "the version's forms are written", func() bool { return formOf(s, 2) == 2 })
	}
	said := func(o *nats.Options) { o.Prefix = "before" }
	before := open(t, c, said)
	if err := set(t, before, 1); err != nil {
		t.Fatal(err)
	}
	const counts = 2 * time.Second
	began := time.Now()
	var all []*nats.Store
	for range 2 {
		all = append(all, open(t, c, func(o *nats.Options) { reads(2, counts)(o); said(o) }))
	}
	for _, s := range all {
		eventually(t, "its forms are written", func() bool { return formOf(s, 2) == 2 })
	}
	if after := time.Since(began); after < counts {
		t.Errorf("newer forms were written %v after the first start", after)
	}
}

// TestUpgradeCutOff cuts off an older version, which still counts as present for a while. When it comes back after that, it gives up the
// state, which it can't read, and has written nothing.
func TestUpgradeCutOff(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	const counts = 3 * time.Second
	g := newGate(t, c)
	old := open(t, c, func(o *nats.Options) { reads(1, counts)(o); o.URL = g.url() })
	young := open(t, c, reads(2, counts))
	if err := set(t, young, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the older version has it", func() bool {
		_, there, err := old.Space("tokens").Get(t.Context(), "key", 10)
		return there && err == nil
	})
	g.shut()
	shut := time.Now()
	eventually(t, "the older version is cut off", func() bool { return old.CutOff() != nil })
	eventually(t, "the newer form is written", func() bool { return formOf(young, 2) == 2 })
	if after := time.Since(shut); after < counts/2 {
		t.Errorf("the newer form is written %v after the older version was cut off", after)
	}
	if e, _, err := old.Space("tokens").Get(t.Context(), "key", 10); err != nil || e.Value[0] != 1 {
		t.Errorf("the older version reads %q, %v", e.Value, err)
	}
	if err := set(t, young, 2); err != nil {
		t.Fatal(err)
	}
	g.open()
	eventually(t, "the older version gives the state up", func() bool { return old.Broken() != nil })
	if err := old.Broken(); !errors.Is(err, state.ErrNewer) {
		t.Error(err)
	}
	if err := set(t, old, 1); !errors.Is(err, state.ErrNewer) {
		t.Errorf("the older version writes with the error %v", err)
	}
	if e, _, err := young.Space("tokens").Get(t.Context(), "key", 10); err != nil || e.Value[0] != 2 {
		t.Errorf("there is %q, %v", e.Value, err)
	}
}

// TestUpgradeRace starts an older version just when the newer one says that its form may be written: one of them learns of the other.
func TestUpgradeRace(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	counts := map[string]int{}
	for round := range 12 {
		in := func(form byte, counts time.Duration) func(*nats.Options) {
			return func(o *nats.Options) { reads(form, counts)(o); o.Prefix = fmt.Sprint("race", round) }
		}
		_ = open(t, c, in(1, 300*time.Millisecond)).Close()
		young := open(t, c, in(2, 10*time.Second)) // it checks every 10 ms
		time.Sleep(240*time.Millisecond + rand.N(80*time.Millisecond))
		if err := refused(t, c, in(1, time.Minute)); err != nil {
			if !errors.Is(err, state.ErrNewer) {
				t.Errorf("the older version is refused with %v", err)
			}
			eventually(t, "the newer version has been told about the older one", func() bool { return formOf(young, 2) == 2 })
			counts["refused"]++
			continue
		}
		counts["let in"]++
		time.Sleep(300 * time.Millisecond)
		if form := formOf(young, 2); form != 1 {
			t.Errorf("the older version has opened the state, and the newer one may write form %d", form)
		}
	}
	t.Log(counts)
}

// TestManyStart starts many processes of a version at once: all use the version's form, and only a few have announced that they can read it.
func TestManyStart(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	const counts = time.Hour
	before := open(t, c, nil)
	var all sync.WaitGroup
	stores := make([]*nats.Store, 40)
	for i := range stores {
		all.Go(func() {
			stores[i] = nats.Begin(nats.Options{URL: c.url(), Prefix: "toolsrv", Forms: map[string]byte{"tokens": 2}, FormsFor: counts})
		})
	}
	all.Wait()
	for _, s := range stores {
		t.Cleanup(func() { _ = s.Close() })
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the form is written", func() bool { return formOf(s, 2) == 2 })
	}
	keys, _, err := before.Space("forms").List(t.Context(), "", "", 0)
	if err != nil || len(keys) != 2 {
		t.Errorf("the state has %q, %v", keys, err)
	}
	js, _ := raw(t, c)
	stream, err := js.Stream(t.Context(), "KV_toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if last := stream.CachedInfo().State.LastSeq; last > 20 {
		t.Errorf("there were %d messages", last)
	}
}

// TestOldService checks that this version does not start if a newer one has written to the state, and says why.
func TestOldService(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	newer := open(t, c, func(o *nats.Options) { o.Forms = map[string]byte{tokens.Space: tokens.Form + 1} })
	eventually(t, "the newer form is written", func() bool { return formOf(newer, tokens.Form+1) > tokens.Form })
	configuration := config.Default()
	configuration.Tools.Directory, configuration.State.URL = t.TempDir(), c.url()
	s, err := core.Open(t.Context(), configuration, core.Options{})
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, state.ErrNewer) || !strings.Contains(err.Error(), "Use that version, or a newer one") {
		t.Errorf("the start ends with %v", err)
	}
}

// TestUpgradePrograms runs a version with a new form of tokens together with an older one, and makes tokens on both with commands. Both are built
// from this tree: the newer one knows one more form, and both count as present for seconds instead of a day.
func TestUpgradePrograms(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	c := start(t, 1, nil)
	root, dir := testkit.Root(t), t.TempDir()
	build := func(name string, changes ...[3]string) string {
		t.Helper()
		replace := map[string]string{}
		for i, change := range changes {
			file := filepath.Join(root, change[0])
			text := string(testkit.Read(t, cmp.Or(replace[file], file)))
			if !strings.Contains(text, change[1]) {
				t.Fatalf("%s does not have %q", file, change[1])
			}
			replace[file] = testkit.Put(t, dir, fmt.Sprint(name, i, ".go"), strings.ReplaceAll(text, change[1], change[2]))
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, name)
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", testkit.Put(t, dir, name+".json", overlay), "-o", program, "./cmd/toolsrv")
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		return program
	}
	counts := [3]string{"internal/state/nats/forms.go", "countsFor = 24 * time.Hour", "countsFor = 10 * time.Second"}
	old := build("old", counts)
	newer := build("newer", counts,
		[3]string{"internal/tokens/record.go", "Form  = 1", "Form  = 2"},
		[3]string{"internal/tokens/change.go", "state.Encode(Form, ", "state.Encode(state.FormOf(s.space, Form), "},
		[3]string{"internal/tokens/use.go", "state.Encode(Form, ", "state.Encode(state.FormOf(s.space, Form), "})
	token := testkit.Put(t, dir, "token", adminToken)
	run := func(program string) (url string, p *exec.Cmd, log *testkit.Log) {
		t.Helper()
		address := fmt.Sprintf("127.0.0.1:%d", freePort())
		folder := t.TempDir()
		config := testkit.Put(t, folder, "toolsrv.toml", fmt.Sprintf("[server]\naddress = %q\n[state]\nurl = %q\n[tools]\ndirectory = %q\ncache_directory = %q\n[[auth.token]]\nname = 'root'\nfile = %q\nscopes = ['*', 'admin']\n[admin]\nenabled = true\n",
			address, c.url(), t.TempDir(), filepath.Join(dir, "cache"), token))
		log = &testkit.Log{}
		p = exec.CommandContext(t.Context(), program, "serve", "--config", config)
		p.Dir, p.Stdout, p.Stderr = folder, log, log
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = p.Process.Kill()
			_ = p.Wait()
			if t.Failed() {
				t.Logf("%s: %.5000s", filepath.Base(program), log.String())
			}
		})
		return "http://" + address, p, log
	}
	command := func(url string, args ...string) error {
		p := exec.CommandContext(t.Context(), old, append(args, "--server", url)...)
		p.Env = append(os.Environ(), "TOOLSRV_TOKEN="+adminToken)
		if out, err := p.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	first, oldProcess, _ := run(old)
	eventually(t, "the older version is ready", func() bool { return command(first, "status") == nil })
	second, _, log := run(newer)
	eventually(t, "the newer version is ready", func() bool { return command(second, "status") == nil })
	look := open(t, c, nil)
	form := func(name string) byte {
		t.Helper()
		e, ok, err := look.Space(tokens.Space).Get(t.Context(), "name/"+name, state.MaxValue)
		if err != nil || !ok {
			t.Fatalf("the token %s: %t, %v", name, ok, err)
		}
		return e.Value[0]
	}
	made := 0
	add := func() byte {
		t.Helper()
		made++
		name := fmt.Sprint("token", made)
		if err := command(second, "tokens", "add", name); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the token is there", func() bool {
			_, ok, _ := look.Space(tokens.Space).Get(t.Context(), "name/"+name, state.MaxValue)
			return ok
		})
		return form(name)
	}
	for until := time.Now().Add(11 * time.Second); time.Now().Before(until); time.Sleep(time.Second) {
		if got := add(); got != 1 {
			t.Fatalf("while the older version runs, a token has the form %d", got)
		}
		if err := command(first, "tokens", "show", fmt.Sprint("token", made)); err != nil {
			t.Fatal(err)
		}
	}
	if err := oldProcess.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := add(); got != 1 {
		t.Errorf("right after the older version was killed a token has the form %d", got)
	}
	eventually(t, "the newer form is written", func() bool { return add() == 2 })
	eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "newer forms of records are written from now on") })
	_, back, why := run(old)
	if err := back.Wait(); err == nil || !strings.Contains(why.String(), "Use that version, or a newer one") {
		t.Errorf("the older version ends with %v", err)
	}
}
