package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A fault says what fails, for how long, and how it is repaired.
type fault struct {
	name   string
	length time.Duration // 0 means as long as other faults
	make   func(ctx context.Context, w *world, l *ledger) error
	heal   func(ctx context.Context, w *world) error
	cut    int // the server that is cut off, or -1
}

// stopped is how long a process stays stopped after SIGSTOP, if the run is long enough.
const stopped = 30 * time.Second

// faults returns all faults in order. Most of them come once for each server or node, or only for the first one in a short run.
func (w *world) faults() []fault {
	var all []fault
	each := replicas
	if w.length < 5*time.Minute {
		each = 1
	}
	if w.old != "" {
		all = append(all, fault{name: "upgrade of all servers", make: upgrade, cut: -1})
	}
	for i := range each {
		name := fmt.Sprint("server", i)
		all = append(all,
			fault{name: name + ": kill -9", cut: -1,
				make: func(ctx context.Context, w *world, l *ledger) error { l.kill(name); w.replicas[i].kill(); return nil },
				heal: func(ctx context.Context, w *world) error { return w.replicas[i].start(ctx) }},
			fault{name: name + ": SIGSTOP", length: stopped, cut: -1,
				make: func(context.Context, *world, *ledger) error { return w.replicas[i].process().Signal(syscall.SIGSTOP) },
				heal: func(context.Context, *world) error { return w.replicas[i].process().Signal(syscall.SIGCONT) }},
			fault{name: name + ": cut off from NATS", cut: i, length: w.hold() + 5*time.Second,
				make: func(context.Context, *world, *ledger) error { w.cutServer(i, true); return nil },
				heal: func(context.Context, *world) error { w.cutServer(i, false); return nil }})
	}
	for i := range each {
		name := fmt.Sprint("server", i)
		all = append(all, fault{name: name + ": slow to NATS", cut: -1, length: w.hold() + 5*time.Second,
			make: func(context.Context, *world, *ledger) error { w.slowServer(i, slow); return nil },
			heal: func(context.Context, *world) error { w.slowServer(i, 0); return nil }})
	}
	for i := range each {
		name := fmt.Sprint("node", i)
		all = append(all,
			fault{name: name + ": kill -9", cut: -1,
				make: func(context.Context, *world, *ledger) error { w.nodes.Kill(i); return nil },
				heal: func(context.Context, *world) error { return w.nodes.Run(i) }},
			fault{name: name + ": SIGSTOP", length: stopped, cut: -1,
				make: func(context.Context, *world, *ledger) error { return w.nodes.Process(i).Signal(syscall.SIGSTOP) },
				heal: func(context.Context, *world) error { return w.nodes.Process(i).Signal(syscall.SIGCONT) }},
			fault{name: name + ": cut off from the other nodes", cut: -1, length: w.hold() + 5*time.Second,
				make: func(context.Context, *world, *ledger) error { w.cutNode(i, true); return nil },
				heal: func(context.Context, *world) error { w.cutNode(i, false); return nil }},
			fault{name: name + ": slow to the other nodes", cut: -1, length: w.hold() + 5*time.Second,
				make: func(ctx context.Context, w *world, _ *ledger) error {
					w.slowNode(i, slow)
					return nil
				},
				heal: func(context.Context, *world) error { w.slowNode(i, 0); return nil }})
	}
	all = append(all,
		fault{name: "two nodes: kill -9", cut: -1,
			make: func(context.Context, *world, *ledger) error { w.nodes.Kill(0); w.nodes.Kill(1); return nil },
			heal: func(context.Context, *world) error { return errors.Join(w.nodes.Run(0), w.nodes.Run(1)) }},
		fault{name: "all nodes: kill -9", cut: -1,
			make: func(context.Context, *world, *ledger) error {
				for i := range nodes {
					w.nodes.Kill(i)
				}
				return nil
			},
			heal: func(context.Context, *world) error {
				return errors.Join(w.nodes.Run(0), w.nodes.Run(1), w.nodes.Run(2))
			}})
	if w.mounts {
		all = append(all,
			fault{name: "node0: disk full", cut: -1,
				make: func(context.Context, *world, *ledger) error { return w.fill(0) },
				heal: func(context.Context, *world) error { return w.free(0) }},
			fault{name: "all nodes: disk full", cut: -1,
				make: func(context.Context, *world, *ledger) error { return errors.Join(w.fill(0), w.fill(1), w.fill(2)) },
				heal: func(context.Context, *world) error { return errors.Join(w.free(0), w.free(1), w.free(2)) }})
	}
	if w.late != "" {
		all = append(all, fault{name: "server1: clock 5 min ahead", cut: -1, make: late, heal: func(ctx context.Context, w *world) error { return w.restart(ctx, 1, w.server) }})
	}
	if w.node != "" {
		all = append(all, fault{name: "node1: clock 5 min ahead", cut: -1, make: lateNode, heal: func(context.Context, *world) error {
			w.nodes.Kill(1)
			return w.nodes.Run(1)
		}})
	}
	if len(w.only) == 0 {
		return all
	}
	var some []fault
	for _, f := range all {
		for _, name := range w.only {
			if strings.HasPrefix(f.name, name) {
				some = append(some, f)
			}
		}
	}
	return some
}

// hold is how long most faults last.
func (w *world) hold() time.Duration {
	return min(max(w.length/60, time.Second), 10*time.Second)
}

// lasts is how long a fault lasts.
func (w *world) lasts(f fault) time.Duration {
	if f.length == 0 {
		return w.hold()
	}
	return min(f.length, max(w.length/10, time.Second))
}

func (w *world) cutServer(i int, cut bool) {
	for j := range nodes {
		shut(w.to[[2]int{i, j}], cut)
	}
}

func (w *world) cutNode(i int, cut bool) {
	for j := range nodes {
		if i != j {
			shut(w.between[[2]int{i, j}], cut)
			shut(w.between[[2]int{j, i}], cut)
		}
	}
}

// slow is the delay in each direction between a slow server or node and the others.
const slow = 100 * time.Millisecond

func (w *world) slowServer(i int, by time.Duration) {
	for j := range nodes {
		w.to[[2]int{i, j}].Delay(by)
	}
}

func (w *world) slowNode(i int, by time.Duration) {
	for j := range nodes {
		if i != j {
			w.between[[2]int{i, j}].Delay(by)
			w.between[[2]int{j, i}].Delay(by)
		}
	}
}

func shut(g interface {
	Shut()
	Open()
}, cut bool) {
	if cut {
		g.Shut()
	} else {
		g.Open()
	}
}

// ballast is the file that fills a disk.
const ballast = "ballast"

// fill fills the disk of a node.
func (w *world) fill(i int) (err error) {
	f, err := os.Create(filepath.Join(w.disk(i), ballast))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for piece := make([]byte, 1<<20); len(piece) > 0; {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			piece = piece[:len(piece)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}

// free removes the file that fills a node's disk, and restarts the node, which stores nothing until then.
func (w *world) free(i int) error {
	if err := os.Remove(filepath.Join(w.disk(i), ballast)); err != nil {
		return err
	}
	w.nodes.Kill(i)
	return w.nodes.Run(i)
}

// restart stops a server and starts a binary in its place, with the same state.
func (w *world) restart(ctx context.Context, i int, binary string) error {
	r := w.replicas[i]
	if err := r.stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", r.name, err)
	}
	r.options.Binary = binary
	if !strings.HasSuffix(r.options.Rest, withShelf) {
		r.options.Rest += withShelf
	}
	return r.start(ctx)
}

// upgrade replaces the old version by the new one, one server after another, while callers make calls.
func upgrade(ctx context.Context, w *world, _ *ledger) error {
	for i := range w.replicas {
		if err := w.restart(ctx, i, w.server); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(w.hold()):
		}
	}
	w.current = true
	return nil
}

// late starts a server whose clock is ahead. A key that another server keeps for a minute must not expire early.
func late(ctx context.Context, w *world, l *ledger) error {
	if err := w.restart(ctx, 1, w.late); err != nil {
		return err
	}
	return w.brief(ctx, l, nil)
}

// lateNode gives a node a clock that is ahead, and makes it the leader of the state. A key that is kept for a minute must not expire early.
func lateNode(ctx context.Context, w *world, l *ledger) error {
	return w.brief(ctx, l, func() error {
		w.nodes.Kill(1)
		return errors.Join(w.nodes.RunAs(1, w.node), w.nodes.Lead(ctx, "KV_toolsrv", 1))
	})
}
