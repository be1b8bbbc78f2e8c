package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// The attacks on the compiler.

func attackShapes(ctx context.Context, a *arena) error {
	for i, body := range []assemble.Body{
		assemble.Live(2500, 2500),  // 28 KB took 1.0 GB and 6 s
		assemble.Straight(100_000), // 771 KB took 5.0 GB
		assemble.Locals(100, 9000), // the most that an earlier limit on the product of locals and branches allowed
	} {
		err := a.put(assemble.Tool{Namespace: namespace, Name: fmt.Sprint("t", i), Bodies: []assemble.Body{body}})
		if err != nil {
			return err
		}
	}
	s, err := a.start(ctx, service.Options{})
	if err != nil {
		return err
	}
	got := load{clients: 3, path: times(3, path), allow: []string{"tool_timeout", "not_found"}}.run(ctx, s)
	if _, err := s.Quiet(ctx); err != nil {
		return errors.Join(s.Died(), err)
	}
	a.tell("%v", &got)
	used, err := s.Processor()
	if err != nil {
		return err
	}
	a.tell("%.1f s of processor time", used.Seconds())
	err = errors.Join(got.judge(s), a.peak(s, 768<<20))
	if used > 15*time.Second {
		err = errors.Join(err, fmt.Errorf("compiling took %v of processor time", used))
	}
	return err
}

func attackCompile(ctx context.Context, a *arena) error {
	const most = 1 << 30
	group, err := newCgroup(a.cgroup, most)
	var o service.Options
	if err == nil {
		a.after = append(a.after, group.remove)
		o.Cgroup = group.directory
	} else {
		a.tell("NO CGROUP (%v)", err)
	}
	if err := a.put(assemble.Tool{Namespace: namespace, Name: "cheap", Number: 1}); err != nil {
		return err
	}
	s, err := a.start(ctx, o)
	if err != nil {
		return err
	}
	var neighbour tally
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		neighbour = load{clients: 1, path: until(done, "/attack/cheap")}.run(ctx, s)
	})
	tiny := make([]assemble.Body, 990_000)
	for i := range tiny {
		tiny[i] = assemble.Body{Params: 1, Results: 1, Code: assemble.LocalGet(0)}
	}
	bombs := []assemble.Tool{
		{Bodies: []assemble.Body{assemble.Fills(1000, 5000)}},                    // 58 KB took 34 s and 1.7 GB
		{Bodies: []assemble.Body{assemble.Fills(1, 20_000)}},                     // 184 KB took 26 s and 750 MB
		{Bodies: []assemble.Body{assemble.TableFills(3000)}, Elements: []int{1}}, // 30 KB took 13 s
		{Bodies: []assemble.Body{assemble.Minima(384_000)}},                      // took 960 MB
		{Bodies: tiny}, // took 17.8 s
		{Bodies: []assemble.Body{assemble.Fills(300, 300)}},                       // it may be small enough to be accepted
		{Bodies: []assemble.Body{assemble.Live(600, 5000)}},                       // it is expensive but accepted
		{Bodies: slices.Repeat([]assemble.Body{assemble.Locals(100, 2500)}, 24)},  // and several functions
		{Bodies: []assemble.Body{assemble.TableFills(1000)}, Elements: []int{10}}, // it, too, may be small enough to be accepted
	}
	var answers tally
	for i, t := range bombs {
		t.Namespace, t.Name, t.Number = namespace, fmt.Sprint("t", i), int32(1000+i)
		err = errors.Join(err, a.put(t))
	}
	time.Sleep(time.Second) // they are seen
	arrived, err1 := a.arrives(ctx, s, "late")
	answers = load{clients: 3, path: times(3*len(bombs), func(i int) string { return path(i % len(bombs)) }), allow: []string{"not_found", "tool_timeout"}}.run(ctx, s)
	begin, served := time.Now(), 0
	for i := range bombs {
		serves, err := a.settles(ctx, s, path(i))
		if err1 = errors.Join(err1, err); serves {
			served++
		}
	}
	took := time.Since(begin)
	close(done)
	all.Wait()
	used, err2 := s.Processor()
	a.tell("%v, in the end %d compiled and %d not, after %.1f s; a neighbour's p50 %.1f and p99 %.1f ms beside them, a new file called after %.1f s", &answers,
		served, len(bombs)-served, took.Seconds(), neighbour.at(50).Seconds()*1e3, neighbour.at(99).Seconds()*1e3, arrived.Seconds())
	a.tell("%.1f s of processor time, the neighbour's included", used.Seconds())
	err = errors.Join(err, err1, err2, answers.judge(s), neighbour.judge(s))
	if group != nil {
		err = errors.Join(err, tellGroup(a, group))
	}
	if p99 := neighbour.at(99); p99 > 300*time.Millisecond || neighbour.refused > 0 {
		err = errors.Join(err, fmt.Errorf("the neighbour's p99 was %v, and %d of its calls were refused", p99, neighbour.refused))
	}
	if arrived > 3*time.Second {
		err = errors.Join(err, fmt.Errorf("a cheap file was served after %v", arrived))
	}
	return err
}

func attackDear(ctx context.Context, a *arena) error {
	cheap := assemble.Tool{Namespace: namespace, Name: "cheap", Number: 1}
	if err := a.put(cheap); err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{})
	if err != nil {
		return err
	}
	var got tally
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		got = load{clients: 2, path: until(done, "/attack/cheap")}.run(ctx, s)
	})
	for i := range 5 {
		err = errors.Join(err, a.put(assemble.Tool{Namespace: namespace, Name: fmt.Sprint("t", i), Number: int32(i), Bodies: dearBodies(i)}))
	}
	time.Sleep(time.Second) // the files have been noticed and compiled
	arrived, err1 := a.arrives(ctx, s, "late")
	cheap.Number = 2
	replaced, err2 := a.replaces(ctx, s, cheap)
	close(done)
	all.Wait()
	quiet, err3 := s.Quiet(ctx)
	a.tell("%v, p99 %.1f ms beside them", &got, got.at(99).Seconds()*1e3)
	a.tell("a new file called after %.1f s, a replaced one listed after %.1f, all compiled %.1f s later",
		arrived.Seconds(), replaced.Seconds(), quiet.Seconds())
	if err := errors.Join(err, err1, err2, err3, got.judge(s)); err != nil {
		return err
	}
	if p99 := got.at(99); p99 > 300*time.Millisecond || got.refused > 0 {
		err = fmt.Errorf("the neighbour's p99 was %v, and %d of its calls were refused", p99, got.refused)
	}
	if late := max(arrived, replaced); late > 3*time.Second {
		err = errors.Join(err, fmt.Errorf("a cheap file was served after %v", late))
	}
	return err
}

// settles waits until a tool is served or its file is refused, and reports which.
func (a *arena) settles(ctx context.Context, s *service.Service, path string) (served bool, err error) {
	client := &http.Client{Timeout: hang}
	for {
		code, err := call(client, s.URL+path, "{}", "{}")
		if err := errors.Join(err, s.Died(), ctx.Err()); err != nil {
			return false, fmt.Errorf("%s is neither served nor refused in the end: %w", path, err)
		}
		switch code {
		case "", "not_found":
			return code == "", nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// dearBodies are functions that together take seconds to compile: a hundred kilobytes of functions with long-lived values, or megabytes of ordinary
// ones.
func dearBodies(kind int) (bodies []assemble.Body) {
	for i := range 15_000 {
		switch {
		case kind%3 == 0:
			bodies = append(bodies, assemble.Ordinary(i))
		case kind%3 == 1 && i < 6:
			bodies = append(bodies, assemble.Live(600, 5000))
		case kind%3 == 2 && i < 24:
			bodies = append(bodies, assemble.Locals(100, 2500))
		}
	}
	return bodies
}

// replaces puts another version in a tool's place, and returns how long it took until that version was served, as the digest in the list of tools
// shows.
func (a *arena) replaces(ctx context.Context, s *service.Service, t assemble.Tool) (time.Duration, error) {
	module, err := t.Module()
	if err != nil {
		return 0, err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(module))
	begin := time.Now()
	if err := a.put(t); err != nil {
		return 0, err
	}
	for {
		answer, err := http.Get(s.URL + "/tools")
		if err != nil {
			return 0, errors.Join(s.Died(), err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if strings.Contains(string(text), digest) {
			return time.Since(begin), nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// arrives adds a cheap tool and returns how long it took until a call of it was answered with 200.
func (a *arena) arrives(ctx context.Context, s *service.Service, name string) (time.Duration, error) {
	begin := time.Now()
	if err := a.put(assemble.Tool{Namespace: namespace, Name: name, Number: 1000}); err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: hang}
	for {
		code, err := call(client, s.URL+"/"+namespace+"/"+name, "{}", "{}")
		if code == "" && err == nil {
			return time.Since(begin), nil
		}
		if err := errors.Join(err, s.Died(), ctx.Err()); err != nil {
			return 0, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func attackDisk(ctx context.Context, a *arena) error {
	const tools = 60
	if err := a.fill(tools, assemble.Tool{Bodies: []assemble.Body{assemble.Ordinary(0), assemble.Ordinary(1)}}); err != nil {
		return err
	}
	const full = `mount -t tmpfs -o size=64k,mode=700 toolsrv-attack "$CACHE"`
	s, err := a.start(ctx, service.Options{Mounts: full})
	if err != nil && s == nil {
		return errors.Join(errSkipped, fmt.Errorf("a small file system could not be mounted, or the server does not start on it: %w", err))
	}
	if err != nil {
		return err
	}
	l := load{clients: 4, path: times(2*tools, func(i int) string { return path(i % tools) })}
	got := l.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.refused > 0 {
		return fmt.Errorf("%d calls were refused", got.refused)
	}
	before, lines := s.Log.Lines.Load(), int64(0)
	used, err := s.Processor()
	if err != nil {
		return err
	}
	time.Sleep(5 * time.Second)
	lines = s.Log.Lines.Load() - before
	after, err := s.Processor()
	a.tell("then %d lines and %.2f s of processor time in 5 s", lines, (after - used).Seconds())
	if lines >= 100 || after-used > time.Second {
		err = errors.Join(err, errors.New("the server goes on trying"))
	}
	return err
}

func attackStart(ctx context.Context, a *arena) error {
	const tools = 3000
	if err := a.fill(tools, assemble.Tool{Bodies: []assemble.Body{assemble.Ordinary(0)}}); err != nil {
		return err
	}
	begin := time.Now()
	s, err := service.Start(ctx, service.Options{Binary: a.binary, Directory: a.directory}) // not before the server is ready
	if err != nil {
		return err
	}
	a.running = append(a.running, s)
	listens := time.Since(begin)
	got := load{clients: 8, path: times(4000, func(i int) string { return path(tools - 1 - i%tools) })}.run(ctx, s)
	a.tell("listened after %.2f s, %v", listens.Seconds(), &got)
	if err := errors.Join(got.judge(s), s.Ready(ctx)); err != nil {
		return err
	}
	// Tools that were called last are compiled before those that nobody has called, and no call waits for all of them.
	each := load{clients: 48, path: times(tools, path)}.run(ctx, s)
	a.tell("each called once by 48 clients: %v", &each)
	if err := each.judge(s); err != nil {
		return err
	}
	if each.refused > 0 {
		return fmt.Errorf("%d first calls were refused", each.refused)
	}
	a.tell("all in %.1f s", time.Since(begin).Seconds())
	return nil
}
