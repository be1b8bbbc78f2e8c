package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// The attacks on servers with little memory: with the least that is enough according to docs/operations.md.

func attackSmall(ctx context.Context, a *arena) error { return serveSmall(ctx, a, 256<<20, python) }

func attackSmaller(ctx context.Context, a *arena) error {
	return serveSmall(ctx, a, 128<<20, javascript)
}

// serveSmall lets a server read and compile ten scripts in a language, in a control group with a memory limit of "most" bytes. It calls each script
// once, and then calls all of them in turn.
func serveSmall(ctx context.Context, a *arena, most int64, l language) error {
	const scripts, calls = 10, 300
	group, err := newCgroup(a.cgroup, most)
	if err != nil {
		return fmt.Errorf("%w: no control group can be made: %w", errSkipped, err)
	}
	a.after = append(a.after, group.remove)
	if err := fillScripts(a, scripts, l); err != nil {
		return err
	}
	begin := time.Now()
	s, err := a.start(ctx, service.Options{Cgroup: group.directory, Rest: withScripts})
	if err != nil {
		return err
	}
	// The start does not wait for scripts whose interpreter takes long to compile.
	first := load{clients: 1, output: func(int) string { return fmt.Sprint(scripts - 1) }, allow: []string{"not_found", "tool_timeout"}}
	for served := 0; served == 0; {
		if ctx.Err() != nil {
			return errors.Join(s.Died(), fmt.Errorf("no script answered in %v", time.Since(begin)))
		}
		first.path = times(1, func(int) string { return path(scripts - 1) })
		got := first.run(ctx, s)
		if err := got.judge(s); err != nil {
			return err
		}
		if served = got.served; served == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	processor, err := s.Processor()
	a.tell("the first answer after %.1f s and %.1f s of processor time", time.Since(begin).Seconds(), processor.Seconds())
	if err != nil {
		return err
	}
	got := load{clients: 8, path: times(calls, func(i int) string { return path(i % scripts) }), output: func(i int) string { return fmt.Sprint(i % scripts) }}.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.refused > 0 {
		return fmt.Errorf("%d calls were refused, though each could have had its turn", got.refused)
	}
	return a.peak(s, most)
}

// attackValues sends arguments whose validation takes many times their size in memory, while other tools take all memory that they can get.
func attackValues(ctx context.Context, a *arena) error {
	const most, span = 160 << 20, 10 * time.Second
	err := errors.Join(
		a.put(assemble.Tool{Namespace: namespace, Name: "t0", Number: 1, Room: 1 << 20}),
		a.put(assemble.Tool{Namespace: namespace, Name: "t1", Number: 2, Grow: large, Wait: 100}))
	if err != nil {
		return err
	}
	group, err := newCgroup(a.cgroup, most)
	if err != nil {
		return fmt.Errorf("%w: no control group can be made: %w", errSkipped, err)
	}
	a.after = append(a.after, group.remove)
	s, err := a.start(ctx, service.Options{Cgroup: group.directory})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	time.AfterFunc(span, func() { close(done) })
	var hogs, values tally
	var all sync.WaitGroup
	all.Go(func() { hogs = load{clients: 8, path: until(done, path(1))}.run(ctx, s) })
	all.Go(func() {
		body := `{"a":[` + strings.Repeat("1,", 1<<19-8) + `1]}`
		values = load{clients: 12, path: until(done, path(0)), body: body, output: func(int) string { return body }}.run(ctx, s)
	})
	all.Wait()
	a.tell("the values %v; the hogs %v", &values, &hogs)
	if err := errors.Join(tellGroup(a, group), values.judge(s), hogs.judge(s)); err != nil {
		return err
	}
	if values.served == 0 || hogs.served == 0 {
		return errors.New("one side kept all memory from the other")
	}
	return a.peak(s, most)
}
