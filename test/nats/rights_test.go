package nats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// The rights that docs/operations.md lists: the least that a server's user needs for a state, and for a bucket of tools.
var (
	stateRights = []string{
		"$KV.toolsrv.>", "$JS.API.STREAM.INFO.KV_toolsrv", "$JS.API.STREAM.CREATE.KV_toolsrv", "$JS.API.STREAM.MSG.GET.KV_toolsrv",
		"$JS.API.CONSUMER.CREATE.KV_toolsrv.>", "$JS.API.CONSUMER.MSG.NEXT.KV_toolsrv.>", "$JS.API.CONSUMER.DELETE.KV_toolsrv.>", "toolsrv.toolsrv.>",
	}
	bucketRights = []string{
		"$O.toolsrv_tools.>", "$JS.API.STREAM.INFO.OBJ_toolsrv_tools", "$JS.API.STREAM.CREATE.OBJ_toolsrv_tools", "$JS.API.STREAM.MSG.GET.OBJ_toolsrv_tools",
		"$JS.API.STREAM.PURGE.OBJ_toolsrv_tools",
		"$JS.API.CONSUMER.CREATE.OBJ_toolsrv_tools.>", "$JS.API.CONSUMER.MSG.NEXT.OBJ_toolsrv_tools.>", "$JS.API.CONSUMER.DELETE.OBJ_toolsrv_tools.>",
	}
	heardRights = []string{"_INBOX.>", "toolsrv.toolsrv.>"}
)

// without returns all words except one.
func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// startFor starts nodes whose only user may publish and subscribe to these subjects.
func startFor(t *testing.T, nodes int, publish, subscribe []string) (c *cluster, url string) {
	t.Helper()
	c = start(t, nodes, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
		}}}
	})
	return c, strings.Replace(c.url(), "nats://", "nats://u:p@", 1)
}

// forms are the forms of records that a server announces at its start.
var forms = map[string]byte{"a": 1}

// TestRights opens states and puts objects as users with all the rights that they need, and as users that lack one of them: the error names the
// missing right, in time.
func TestRights(t *testing.T) {
	all := slices.Concat(stateRights, bucketRights)
	use := func(t *testing.T, publish, subscribe []string, warns bool) (log string, err error) {
		_, url := startFor(t, 1, publish, subscribe)
		var said lockedBuffer
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s, err := nats.Open(ctx, nats.Options{URL: url, Prefix: "toolsrv", Forms: forms, Log: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			return said.String(), err
		}
		defer s.Close()
		defer s.Hear("topic", func([]byte) {})()
		_, err = s.Space("a").Set(t.Context(), "key", []byte("\x01value"), state.Any, state.SetOptions{})
		if err == nil {
			_, _, err = s.Space("a").Get(t.Context(), "key", 100)
		}
		objects := s.Objects("tools")
		content := bytes.Repeat([]byte("content"), 100_000)
		for range 2 { // the second state replaces the first
			if err == nil {
				err = objects.Put(t.Context(), "object", bytes.NewReader(content))
			}
		}
		if err == nil {
			_, _, err = objects.Room(t.Context())
		}
		if err == nil {
			_, err = objects.Collect(t.Context(), 0, func(string) bool { return false })
		}
		if s.Tell("topic", nil); warns {
			eventually(t, "the log has the warning", func() bool { return strings.Contains(said.String(), "level=WARN") })
		}
		return said.String(), err
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		if log, err := use(t, all, heardRights, false); err != nil || strings.Contains(log, "does not let") {
			t.Errorf("got %v, %s", err, log)
		}
	})
	lacks := func(right, do string, publish, subscribe []string) {
		t.Run(do+" "+right, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			warns := strings.Contains(right, "toolsrv.toolsrv.") || strings.Contains(right, "CONSUMER.DELETE") // everything else works
			log, err := use(t, publish, subscribe, warns)
			said := "NATS doesn't allow this server's user to " + do + " " + right + ": give it that permission"
			if warns {
				if err != nil || strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, said) {
					t.Errorf("got %v, %s", err, log)
				}
				return
			}
			if !errors.Is(err, state.ErrUnavailable) || !strings.Contains(err.Error(), said) {
				t.Errorf("got %v after %v, want %q", err, time.Since(began), said)
			}
			t.Logf("after %v", time.Since(began))
		})
	}
	for _, right := range all {
		lacks(right, "publish to", without(all, right), heardRights)
	}
	for _, right := range heardRights {
		lacks(right, "subscribe to", all, without(heardRights, right))
	}
}

// TestRightsInPage reads the rights in docs/operations.md: they must be exactly those with which TestRights passes.
func TestRightsInPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\nThe first server makes the bucket, ")
	section, _, _ = strings.Cut(section, "\n| ")
	_, section, found := strings.Cut(section, "The server's user needs ")
	subjects, state, more := strings.Cut(section, "\n- the state: ")
	state, bucket, last := strings.Cut(state, "\n- a bucket: the same with `OBJ_toolsrv_tools`, ")
	if !found || !more || !last {
		t.Fatalf("the page has another form:\n%s", section)
	}
	// listed returns the rights in a text, such as `STREAM.{INFO,CREATE}.KV_toolsrv`.
	listed := func(text, prefix string) (all []string) {
		for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
			before, rest, _ := strings.Cut(span[1], "{")
			words, after, several := strings.Cut(rest, "}")
			if !several {
				all = append(all, prefix+span[1])
				continue
			}
			for word := range strings.SplitSeq(words, ",") {
				all = append(all, prefix+before+word+after)
			}
		}
		return all
	}
	got := listed(subjects, "")
	for _, right := range listed(state, "$JS.API.") {
		got = append(got, right)
		if of := strings.Replace(right, "KV_toolsrv", "OBJ_toolsrv_tools", 1); of != right {
			got = append(got, of)
		}
	}
	got = append(got, listed(bucket, "$JS.API.")...)
	want := slices.Concat(stateRights, bucketRights, []string{
		"tools", "$JS.API.>", // the bucket's name, and the wildcard that covers all of the following
		"$JS.API.INFO", "$JS.API.UPDATE", // rights that only some servers need
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for _, right := range got {
			if !slices.Contains(want, right) {
				t.Errorf("the page has %s, which is not needed", right)
			}
		}
		for _, right := range want {
			if !slices.Contains(got, right) {
				t.Errorf("the page lacks %s", right)
			}
		}
	}
}

// TestNoRightToDelete opens states whose user can't delete consumers. Consumers that begin at a node other than the leader can't be used,
// and end by themselves: opening does not wait for that.
func TestNoRightToDelete(t *testing.T) {
	_, url := startFor(t, 3, without(stateRights, "$JS.API.CONSUMER.DELETE.KV_toolsrv.>"), heardRights)
	use := func() {
		t.Helper()
		s, err := nats.Open(t.Context(), nats.Options{URL: url, Prefix: "toolsrv"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	use() // this state makes the bucket
	began := time.Now()
	for range 8 {
		use()
	}
	if took := time.Since(began); took > 8*time.Second { // two of three consumers begin at another node than the leader, and each used to cost two seconds
		t.Errorf("it took %v", took)
	}
}

// TestConsumersGo checks that closed states leave no consumers. Nobody waits for the answer when one is deleted, so the servers may miss one, which
// ends by itself after 30 s.
func TestConsumersGo(t *testing.T) {
	c := start(t, 3, nil)
	for range 4 {
		if err := open(t, c, nil).Close(); err != nil {
			t.Error(err)
		}
	}
	js, _ := raw(t, c)
	began := time.Now()
	left := func(most int) {
		eventually(t, fmt.Sprintf("at most %d consumers are left", most), func() bool {
			stream, err := js.Stream(t.Context(), "KV_toolsrv")
			return err == nil && stream.CachedInfo().State.Consumers <= most
		})
	}
	left(1)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	left(0)
}
