package kv_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/kv"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

// within calls f like a tool.
func within(t *testing.T, world *toolsrvtest.World, f func(c *toolsrv.Call) error) error {
	t.Helper()
	m := toolsrv.Module{Needs: toolsrv.Needs{KV: true}, Tools: []toolsrv.Tool{
		toolsrv.Func("f", "F.", func(c *toolsrv.Call, _ struct{}) (bool, error) { return true, f(c) }),
	}}
	_, err := world.Call(t, m, "f", `{}`)
	return err
}

// code returns the code of a failure.
func code(err error) string {
	if f, ok := toolsrv.AsType[*toolsrv.Failure](err); ok {
		return f.Code
	}
	return ""
}

func TestVersions(t *testing.T) {
	t.Parallel()
	world := &toolsrvtest.World{KV: map[string][]byte{"there": []byte("1")}}
	err := within(t, world, func(c *toolsrv.Call) error {
		if _, found, err := kv.Get(c, "none"); found || err != nil {
			t.Errorf("got %t, %v for a missing key", found, err)
		}
		old, found, err := kv.Get(c, "there")
		if string(old.Value) != "1" || !found || old.Version == 0 || !old.Expires.IsZero() || err != nil {
			t.Errorf("got %+v, %t, %v, want what the test has put there", old, found, err)
		}
		if _, err := kv.Create(c, "there", nil, 0); code(err) != "conflict" {
			t.Errorf("create: got %v, want a conflict", err)
		}
		version, err := kv.Update(c, "there", []byte("2"), 0, old.Version)
		if version == old.Version || version == 0 || err != nil {
			t.Errorf("update: got %d, %v, want another version than %d", version, err, old.Version)
		}
		if _, err := kv.Update(c, "there", []byte("3"), 0, old.Version); code(err) != "conflict" {
			t.Errorf("an update of the old version: got %v, want a conflict", err)
		}
		if _, err := kv.Update(c, "new", []byte("3"), 0, 0); err != nil {
			t.Errorf("an update of nothing: %v", err)
		}
		if _, err := kv.DeleteVersion(c, "there", old.Version); code(err) != "conflict" {
			t.Errorf("a removal of the old version: got %v, want a conflict", err)
		}
		if found, err := kv.DeleteVersion(c, "there", version); !found || err != nil {
			t.Errorf("delete: got %t, %v", found, err)
		}
		if found, err := kv.Delete(c, "there"); found || err != nil {
			t.Errorf("delete again: got %t, %v, want nothing there", found, err)
		}
		if _, err := kv.Set(c, "new", nil, -1); code(err) != "invalid" {
			t.Errorf("a time to live below 0: got %v, want invalid", err)
		}
		return nil
	})
	if err != nil || len(world.KV) != 1 || string(world.KV["new"]) != "3" {
		t.Errorf("got %v, %v, want the key that is left", world.KV, err)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1e12)
	world := &toolsrvtest.World{Now: func() time.Time { return now }}
	look := func() (entry kv.Entry, found bool) {
		err := within(t, world, func(c *toolsrv.Call) (err error) {
			entry, found, err = kv.Get(c, "k")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return entry, found
	}
	err := within(t, world, func(c *toolsrv.Call) error {
		_, err := kv.Set(c, "k", []byte("v"), time.Minute)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if entry, found := look(); !found || !entry.Expires.Equal(now.Add(time.Minute)) {
		t.Errorf("got %v, %t, want it to go in a minute", entry.Expires, found)
	}
	now = now.Add(time.Minute)
	if _, found := look(); found || len(world.KV) != 0 {
		t.Errorf("it is there after its time: %v", world.KV)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	world := &toolsrvtest.World{KV: map[string][]byte{"b/": nil, "z": nil}}
	var want []string
	for i := range 2500 {
		key := fmt.Sprintf("a/%04d", i)
		world.KV[key] = nil
		want = append(want, key)
	}
	err := within(t, world, func(c *toolsrv.Call) error {
		keys, more, err := kv.List(c, "a/", "a/0003", 2)
		if !slices.Equal(keys, want[4:6]) || !more || err != nil {
			t.Errorf("got %q, %t, %v", keys, more, err)
		}
		if keys, more, err := kv.List(c, "b", "", 10); !slices.Equal(keys, []string{"b/"}) || more || err != nil {
			t.Errorf("got %q, %t, %v", keys, more, err)
		}
		var all []string
		for key, err := range kv.All(c, "a/") {
			if err != nil {
				return err
			}
			all = append(all, key)
		}
		if !slices.Equal(all, want) {
			t.Errorf("got %d keys, want all %d in order", len(all), len(want))
		}
		for key := range kv.All(c, "") {
			if key != "a/0000" {
				t.Errorf("got %q first", key)
			}
			break
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestChange increments a counter, and another call is faster each time.
func TestChange(t *testing.T) {
	t.Parallel()
	increment := func(e kv.Entry, _ bool) ([]byte, error) {
		n, _ := strconv.Atoi(string(e.Value))
		return []byte(strconv.Itoa(n + 1)), nil
	}
	world := new(toolsrvtest.World)
	err := within(t, world, func(c *toolsrv.Call) error {
		for _, overtaken := range []int{0, 1, 63} {
			_, err := kv.Change(c, "n", 0, func(e kv.Entry, found bool) ([]byte, error) {
				if overtaken > 0 {
					overtaken--
					if _, err := kv.Set(c, "n", []byte("10"), 0); err != nil {
						return nil, err
					}
				}
				return increment(e, found)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || string(world.KV["n"]) != "11" {
		t.Errorf("got %s, %v, want 11", world.KV["n"], err)
	}
	stop := errors.New("stop")
	err = within(t, world, func(c *toolsrv.Call) error {
		_, err := kv.Change(c, "n", 0, func(e kv.Entry, _ bool) ([]byte, error) {
			_, err := kv.Set(c, "n", []byte("x"), 0)
			return nil, err
		})
		if code(err) != "conflict" {
			t.Errorf("always overtaken: got %v, want a conflict", err)
		}
		_, err = kv.Change(c, "n", 0, func(kv.Entry, bool) ([]byte, error) { return nil, stop })
		return err
	})
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the function", err)
	}
}

// TestUndeclared: each function fails for a tool that does not declare the need for keys.
func TestUndeclared(t *testing.T) {
	t.Parallel()
	m := toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("f", "F.", func(c *toolsrv.Call, _ struct{}) ([]string, error) {
		_, _, get := kv.Get(c, "k")
		_, set := kv.Set(c, "k", nil, 0)
		_, remove := kv.Delete(c, "k")
		_, _, list := kv.List(c, "", "", 0)
		var all error
		for _, all = range kv.All(c, "") {
		}
		return []string{code(get), code(set), code(remove), code(list), code(all)}, nil
	})}}
	got, err := (&toolsrvtest.World{KV: map[string][]byte{"k": nil}}).Call(t, m, "f", "")
	if want := `["not_granted","not_granted","not_granted","not_granted","not_granted"]`; got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
