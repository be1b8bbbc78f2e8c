// Command fleet measures the load of many replicas on one state in NATS. Each replica is the store of a server, with its own connection and copy. All
// replicas are in this process, and each of the three NATS nodes is a separate process, so that their costs can be told apart.
//
//	fleet [-replicas 3,10,100,300,1000] [-keys 1000] [-span 10s]
//
// It prints a row of a table for each number of replicas. The nodes and all replicas share the machine, so the times are those of one machine that
// does the work of a whole fleet: docs/scale.md says what follows for several machines. At the end it prints the straight lines through the measured
// costs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/cluster"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

func main() {
	os.Exit(measure.Main("fleet", run, map[string]measure.Child{cluster.Command: cluster.Child}))
}

// nodes is how many nodes of NATS there are.
const nodes = 3

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(log)
	sizes := flags.String("replicas", "3,10,100,300,1000", "numbers of replicas, separated by commas")
	keys := flags.Int("keys", 1000, "how many keys of 100 bytes the state has")
	span := flags.Duration("span", 10*time.Second, "how long the idle phase and the phase of changes each last")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	fmt.Fprintln(out, "| replicas | all begin: s | nodes' CPU s | idle: nodes' cores | messages/s | KiB/s | nodes' MiB | a replica's µs/s | changed by all: p50, p99 ms | a write: p50, p99 ms | writes/s of 64 | nodes' µs a write | a replica's µs a write | a node ends: writes again s | all whole s | all nodes end and begin: all whole s |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of replicas", text)
		}
		row, err := measureFleet(ctx, n, *keys, *span, log)
		if err != nil {
			return fmt.Errorf("%d replicas: %w", n, err)
		}
		fmt.Fprintln(out, row)
	}
	return nil
}

// A fleet is replicas on one cluster.
type fleet struct {
	nodes    *cluster.Cluster
	replicas []*nats.Store
	seen     []atomic.Uint64 // the last version of the changing key, by replica
	watching sync.WaitGroup
	stop     context.CancelFunc
}

// measureFleet returns a row of the table.
func measureFleet(ctx context.Context, n, keys int, span time.Duration, log io.Writer) (row string, err error) {
	directory, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(directory)
	f := &fleet{seen: make([]atomic.Uint64, n)}
	if f.nodes, err = cluster.Start(ctx, nodes, directory, log); err != nil {
		return "", err
	}
	defer f.nodes.Close()
	if err := f.fill(ctx, keys); err != nil {
		return "", err
	}

	before, err := f.nodes.Used()
	if err != nil {
		return "", err
	}
	began := time.Now()
	defer f.close()
	if err := f.open(ctx, n); err != nil {
		return "", err
	}
	opened := time.Since(began)
	after, err := f.nodes.Used()
	if err != nil {
		return "", err
	}
	row = fmt.Sprintf("| %d | %.2f | %.2f ", n, opened.Seconds(), after.Less(before).Processor.Seconds())

	idle, own, err := f.idle(ctx, span)
	if err != nil {
		return "", err
	}
	row += fmt.Sprintf("| %.3f | %.0f | %.0f | %d | %.0f ", idle.Processor.Seconds()/span.Seconds(), float64(idle.In+idle.Out)/span.Seconds(),
		float64(idle.InBytes+idle.OutBytes)/1024/span.Seconds(), idle.Resident>>20, float64(own.Microseconds())/span.Seconds()/float64(n))

	seen, written, err := f.change(ctx, span)
	if err != nil {
		return "", err
	}
	row += fmt.Sprintf("| %s | %s ", percentiles(seen), percentiles(written))

	written64, used, own, err := f.write(ctx, span)
	if err != nil {
		return "", err
	}
	row += fmt.Sprintf("| %.0f | %.0f | %.1f ", float64(written64)/span.Seconds(), float64(used.Processor.Microseconds())/float64(written64),
		float64(own.Microseconds())/float64(written64)/float64(n))

	f.nodes.Kill(0)
	began = time.Now()
	writes, whole, err := f.recover(ctx, began)
	if err != nil {
		return "", fmt.Errorf("after a node had ended: %w", err)
	}
	row += fmt.Sprintf("| %.2f | %.2f ", writes.Seconds(), whole.Seconds())

	for i := 1; i < nodes; i++ {
		f.nodes.Kill(i)
	}
	for i := range nodes {
		if err := f.nodes.Run(i); err != nil {
			return "", err
		}
	}
	began = time.Now()
	if _, whole, err = f.recover(ctx, began); err != nil {
		return "", fmt.Errorf("after all nodes had ended: %w", err)
	}
	return row + fmt.Sprintf("| %.2f |", whole.Seconds()), nil
}

func percentiles(all []time.Duration) string {
	return fmt.Sprintf("%.1f, %.1f", milliseconds(measure.Percentile(all, 50)), milliseconds(measure.Percentile(all, 99)))
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func (f *fleet) options() nats.Options { return nats.Options{URL: f.nodes.URL(), Prefix: "fleet"} }

// fill writes the keys that replicas find.
func (f *fleet) fill(ctx context.Context, keys int) error {
	s, err := nats.Open(ctx, f.options())
	if err != nil {
		return err
	}
	defer s.Close()
	var failed atomic.Pointer[error]
	var writing sync.WaitGroup
	for i := range keys {
		writing.Go(func() {
			if _, err := s.Space("keys").Set(ctx, fmt.Sprint(i), make([]byte, 100), state.Any, state.SetOptions{}); err != nil {
				failed.Store(&err)
			}
		})
	}
	writing.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// space and key name the key that changes.
const space, key = "changes", "key"

// open opens all replicas at once, and returns when each has its copy. Each watches the key.
func (f *fleet) open(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for range n {
		f.replicas = append(f.replicas, nats.Begin(f.options()))
	}
	var watched context.Context
	watched, f.stop = context.WithCancel(context.Background())
	for i, s := range f.replicas {
		if err := s.Wait(ctx); err != nil {
			return err
		}
		f.watching.Go(func() {
			for e, err := range s.Space(space).Watch(watched, key) {
				if err != nil {
					return
				}
				if !e.Synced {
					f.seen[i].Store(e.Version)
				}
			}
		})
	}
	return nil
}

func (f *fleet) close() {
	if f.stop != nil {
		f.stop()
	}
	var closing sync.WaitGroup
	for _, s := range f.replicas {
		closing.Go(func() { _ = s.Close() })
	}
	closing.Wait()
	f.watching.Wait()
}

// idle returns what the nodes, and this process, use while nothing happens.
func (f *fleet) idle(ctx context.Context, span time.Duration) (used cluster.Used, own time.Duration, err error) {
	before, err := f.nodes.Used()
	if err != nil {
		return used, 0, err
	}
	own, err = processor()
	if err != nil {
		return used, 0, err
	}
	select {
	case <-ctx.Done():
		return used, 0, ctx.Err()
	case <-time.After(span):
	}
	after, err := f.nodes.Used()
	if err != nil {
		return used, 0, err
	}
	now, err := processor()
	return after.Less(before), now - own, err
}

// processor returns the processor time of this process.
func processor() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}

// change changes a key ten times a second, each time through a different replica. It returns how long it took until all replicas had each change, and
// until the change was confirmed.
func (f *fleet) change(ctx context.Context, span time.Duration) (seen, written []time.Duration, err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range int(span / (100 * time.Millisecond)) {
		began := time.Now()
		version, err := f.replicas[i%len(f.replicas)].Space(space).Set(ctx, key, nil, state.Any, state.SetOptions{})
		if err != nil {
			return nil, nil, err
		}
		written = append(written, time.Since(began))
		if err := f.have(ctx, version); err != nil {
			return nil, nil, err
		}
		seen = append(seen, time.Since(began))
		<-tick.C
	}
	return seen, written, nil
}

// write has 64 writers write keys as fast as they are confirmed, each in its own space and through one of the replicas. It returns how many keys were
// written, and what the nodes and this process used.
func (f *fleet) write(ctx context.Context, span time.Duration) (written int64, used cluster.Used, own time.Duration, err error) {
	before, err := f.nodes.Used()
	if err != nil {
		return 0, used, 0, err
	}
	if own, err = processor(); err != nil {
		return 0, used, 0, err
	}
	var sum atomic.Int64
	errs := make([]error, 64)
	var writing sync.WaitGroup
	late := time.Now().Add(span)
	for i := range errs {
		writing.Go(func() {
			in := f.replicas[i%len(f.replicas)].Space(fmt.Sprint("of/", i))
			for at := 0; errs[i] == nil && time.Now().Before(late); at++ {
				_, errs[i] = in.Set(ctx, fmt.Sprint(at%100), make([]byte, 100), state.Any, state.SetOptions{})
				sum.Add(1)
			}
		})
	}
	writing.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, used, 0, err
	}
	// Wait until the slowest replica has all keys.
	version, err := f.replicas[0].Space(space).Set(ctx, key, nil, state.Any, state.SetOptions{})
	if err == nil {
		err = f.have(ctx, version)
	}
	if err != nil {
		return 0, used, 0, err
	}
	now, err := processor()
	if err != nil {
		return 0, used, 0, err
	}
	after, err := f.nodes.Used()
	return sum.Load(), after.Less(before), now - own, err
}

// have waits until all replicas have a version.
func (f *fleet) have(ctx context.Context, version uint64) error {
	late := time.Now().Add(2 * time.Minute)
	for i := range f.seen {
		for f.seen[i].Load() < version {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case time.Now().After(late):
				return f.unseen(version)
			}
			time.Sleep(500 * time.Microsecond)
		}
	}
	return nil
}

// unseen returns what the replicas that do not have a version say about themselves.
func (f *fleet) unseen(version uint64) error {
	n, why := 0, errors.New("none of them is cut off")
	for i, s := range f.replicas {
		if f.seen[i].Load() < version {
			n++
			if cut := s.CutOff(); cut != nil {
				why = fmt.Errorf("one is cut off: %w", cut.Why)
			}
		}
	}
	return fmt.Errorf("%d replicas do not see a change within two minutes: %w", n, why)
}

// recover makes something happen, and returns how long it took until a change was accepted, and until all replicas had the change and were connected
// again.
func (f *fleet) recover(ctx context.Context, began time.Time) (writes, whole time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var version uint64
	for i := 0; ; i++ {
		version, err = f.replicas[i%len(f.replicas)].Space(space).Set(ctx, key, nil, state.Any, state.SetOptions{})
		if err == nil {
			break
		}
		if !errors.Is(err, state.ErrUnavailable) {
			return 0, 0, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	writes = time.Since(began)
	if err := f.have(ctx, version); err != nil {
		return 0, 0, err
	}
	for i, s := range f.replicas {
		for s.CutOff() != nil {
			if ctx.Err() != nil {
				return 0, 0, fmt.Errorf("replica %d is cut off: %w", i, s.CutOff().Why)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return writes, time.Since(began), nil
}
