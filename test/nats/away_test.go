package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// TestAway stops the NATS servers of two replicas: the replicas still read what they have, write nothing, and say that they are cut off. Once the
// servers are back, the replicas agree again.
func TestAway(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one, other := open(t, c, nil), open(t, c, nil)
	if _, err := one.Space("a").Set(t.Context(), "key", []byte("before"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other replica knows the key", func() bool {
		_, ok, _ := other.Space("a").Get(t.Context(), "key", 10)
		return ok
	})
	c.stop(0)
	for i, s := range []*nats.Store{one, other} {
		eventually(t, "the store is cut off", func() bool { return s.CutOff() != nil })
		began := time.Now()
		if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); !errors.Is(err, state.ErrUnavailable) || !strings.Contains(err.Error(), "cut off since") {
			t.Errorf("replica %d: setting a key gives the error %v", i, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("replica %d refuses after %v", i, took)
		}
		if e, _, err := s.Space("a").Get(t.Context(), "key", 10); err != nil || string(e.Value) != "before" {
			t.Errorf("replica %d reads %q, %v", i, e.Value, err)
		}
		if keys, _, err := s.Space("a").List(t.Context(), "", "", 0); err != nil || len(keys) != 1 {
			t.Errorf("replica %d lists %q, %v", i, keys, err)
		}
	}
	c.run(t, 0)
	c.wait(t)
	back := time.Now()
	for _, s := range []*nats.Store{one, other} {
		eventually(t, "the store is no longer cut off", func() bool { return s.CutOff() == nil })
	}
	t.Logf("no longer cut off after %v", time.Since(back))
	if _, err := one.Space("a").Set(t.Context(), "key", []byte("after"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other replica has the new value", func() bool {
		e, _, _ := other.Space("a").Get(t.Context(), "key", 10)
		return string(e.Value) == "after"
	})
}

// TestWithoutQuorum stops two of three nodes: writes fail within a limited time, reads continue, and everything works again once there are two nodes.
func TestWithoutQuorum(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	s := open(t, c, func(o *nats.Options) { o.Limit = 2 * time.Second })
	space := s.Space("a")
	if _, err := space.Set(t.Context(), "key", []byte("before"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	c.stop(0)
	c.stop(1)
	for i := range 8 {
		began := time.Now()
		_, err := space.Set(t.Context(), "key", []byte("lost"), state.Any, state.SetOptions{})
		if !errors.Is(err, state.ErrUnavailable) || time.Since(began) > 4*time.Second {
			t.Errorf("write %d fails with %v after %v", i, err, time.Since(began))
		}
		if e, _, err := space.Get(t.Context(), "key", 10); err != nil || string(e.Value) != "before" {
			t.Errorf("read %q, %v", e.Value, err)
		}
	}
	eventually(t, "the store is cut off", func() bool { return s.CutOff() != nil })
	c.run(t, 0)
	began := time.Now()
	eventually(t, "a write succeeds again", func() bool {
		_, err := space.Set(t.Context(), "key", []byte("after"), state.Any, state.SetOptions{})
		return err == nil
	})
	t.Logf("a write succeeds %v after the second node was started", time.Since(began))
}

// TestNobodyLeads stops two of three nodes while nobody writes. The third node still answers with its own data, but the store must count as cut
// off.
func TestNobodyLeads(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	s := open(t, c, nil)
	c.stop(0)
	c.stop(1)
	eventually(t, "the store is cut off", func() bool { return s.CutOff() != nil })
	c.run(t, 0)
	eventually(t, "the store is whole again", func() bool { return s.CutOff() == nil })
}

// TestIsolatedNode isolates the node that a store is connected to from the other nodes. The store must connect to one of those, and write
// there.
func TestIsolatedNode(t *testing.T) {
	t.Parallel()
	c, between := startGated(t)
	s := open(t, c, nil)
	space := s.Space("a")
	if _, err := space.Set(t.Context(), "key", []byte("before"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, n := range c.nodes {
		if n.NumClients() > 0 {
			name = n.Name()
		}
	}
	for _, g := range between[name] {
		g.shut()
	}
	began := time.Now()
	eventually(t, "a write succeeds", func() bool {
		_, err := space.Set(t.Context(), "key", []byte("meanwhile"), state.Any, state.SetOptions{})
		return err == nil
	})
	t.Logf("a write succeeds %v after %s, which the store was connected to, was cut off from the others", time.Since(began), name)
	for _, n := range c.nodes {
		if n.Name() == name && n.NumClients() > 0 {
			t.Errorf("the store is still connected to %s", name)
		}
	}
}

// startGated starts three nodes that reach each other through gates, and returns the gates by the names of both nodes.
func startGated(t *testing.T) (c *cluster, between map[string][]*gate) {
	t.Helper()
	between = map[string][]*gate{}
	c = start(t, 3, func(o *server.Options) {
		o.Cluster.NoAdvertise, o.Cluster.Advertise = true, "127.0.0.1:1" // the nodes have no connections other than the gates
		for i, to := range o.Routes {
			if to.Port() == fmt.Sprint(o.Cluster.Port) {
				continue
			}
			g := newGateTo(t, to.Host)
			for _, name := range []string{o.ServerName, fmt.Sprint("node", i)} {
				between[name] = append(between[name], g)
			}
			o.Routes = slices.Clone(o.Routes)
			o.Routes[i] = &url.URL{Scheme: "nats", Host: g.listener.Addr().String()}
		}
	})
	return c, between
}

// TestCatchUp checks that a replica that has missed many changes gets them once it is back.
func TestCatchUp(t *testing.T) {
	c := start(t, 1, nil)
	gate := newGate(t, c)
	one, cut := open(t, c, nil), open(t, c, func(o *nats.Options) { o.URL = gate.url() })
	gate.shut()
	eventually(t, "the store is cut off", func() bool { return cut.CutOff() != nil })
	const changes = 1000
	for i := range changes {
		if _, err := one.Space("a").Set(t.Context(), fmt.Sprint(i%300), fmt.Append(nil, i), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Space("a").Delete(t.Context(), "7", state.Any); err != nil {
		t.Fatal(err)
	}
	if u, err := cut.Space("a").Usage(t.Context()); err != nil || u.Entries != 0 {
		t.Errorf("the store that is cut off has %+v, %v", u, err)
	}
	gate.open()
	began := time.Now()
	eventually(t, "the store is whole again", func() bool { return cut.CutOff() == nil })
	took := time.Since(began)
	if u, err := cut.Space("a").Usage(t.Context()); err != nil || u.Entries != 299 {
		t.Errorf("the store has %+v, %v", u, err)
	}
	if e, _, err := cut.Space("a").Get(t.Context(), fmt.Sprint((changes-1)%300), 10); err != nil || string(e.Value) != fmt.Sprint(changes-1) {
		t.Errorf("the last change is %q, %v", e.Value, err)
	}
	t.Logf("caught up after %v", took)
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestMadeAnew lets somebody delete the bucket: replicas forget nothing, and overwrite nothing.
func TestMadeAnew(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	s := open(t, c, nil)
	for i := range 10 {
		if _, err := s.Space("a").Set(t.Context(), fmt.Sprint(i), nil, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	js, _ := raw(t, c)
	if err := js.DeleteStream(t.Context(), "KV_toolsrv"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is cut off", func() bool { return s.CutOff() != nil })
	if _, ok, err := s.Space("a").Get(t.Context(), "3", 10); !ok || err != nil {
		t.Errorf("after the bucket was deleted, the key exists: %t, %v", ok, err)
	}
	second := open(t, c, nil) // makes it anew
	if _, err := second.Space("a").Set(t.Context(), "other", nil, state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store has given up", func() bool { return s.Broken() != nil })
	if _, err := s.Space("a").Set(t.Context(), "3", nil, state.Any, state.SetOptions{}); !errors.Is(err, state.ErrUnavailable) || !strings.Contains(err.Error(), "created again") {
		t.Errorf("a write fails with %v", err)
	}
}

// TestMadeAnewWithMore lets somebody replace the state's bucket by another one with more changes.
func TestMadeAnewWithMore(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	s := open(t, c, nil)
	if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	js, _ := raw(t, c)
	stream, err := js.Stream(t.Context(), "KV_toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "KV_toolsrv"); err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.FirstSeq = 1000
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is given up", func() bool { return s.Broken() != nil })
	if err := s.Broken(); !strings.Contains(err.Error(), "created again") {
		t.Error(err)
	}
}

// TestSameBucket restarts all nodes of a cluster, one of them without its data, and makes each of them the leader: the bucket stays the same.
func TestSameBucket(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	s := open(t, c, nil)
	js, conn := raw(t, c)
	write := func() {
		t.Helper()
		eventually(t, "a write succeeds", func() bool {
			_, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{})
			return err == nil
		})
		if err := s.Broken(); err != nil {
			t.Fatal(err)
		}
	}
	write()
	for i := range c.nodes {
		c.stop(i)
		if i == 1 { // the node has to get all data from the others
			if err := os.RemoveAll(c.options[i].StoreDir); err != nil {
				t.Fatal(err)
			}
		}
		c.run(t, i)
		c.wait(t)
		write()
	}
	for _, o := range c.options {
		eventually(t, o.ServerName+" leads", func() bool {
			stream, err := js.Stream(t.Context(), "KV_toolsrv")
			if err == nil && stream.CachedInfo().Cluster.Leader == o.ServerName {
				return true
			}
			_, _ = conn.Request("$JS.API.STREAM.LEADER.STEPDOWN.KV_toolsrv", fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, o.ServerName), time.Second)
			time.Sleep(time.Second) // until the node is elected
			return false
		})
		write()
	}
}

// TestNobodyThere opens a state whose servers do not exist: opening fails in time, and the error says what it waited for.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	_, err := nats.Open(ctx, nats.Options{URL: fmt.Sprintf("nats://127.0.0.1:%d", freePort()), Prefix: "toolsrv"})
	if !errors.Is(err, state.ErrUnavailable) || !strings.Contains(err.Error(), "no servers available") || time.Since(began) > 10*time.Second {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
}
