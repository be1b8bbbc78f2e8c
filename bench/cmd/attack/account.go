package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// The attacks on the scarce resources of a process: mappings, memory, file descriptors.

func attackMappings(ctx context.Context, a *arena) error {
	const tools, each = 3000, 8
	return mappings(ctx, a, service.Options{}, assemble.Tool{Wait: 20}, tools,
		load{clients: 4 * each, path: times(tools*each, func(i int) string { return path(i / each) })})
}

func attackMappingsBusy(ctx context.Context, a *arena) error {
	const tools, each = 3000, 30
	return mappings(ctx, a, service.Options{Env: []string{"GOMAXPROCS=16"}}, assemble.Tool{Wait: 1}, tools,
		load{clients: 64, path: times(tools*each, func(i int) string { return path(i / each) })})
}

// mappings calls many tools, and watches how many mappings the server has meanwhile.
func mappings(ctx context.Context, a *arena, o service.Options, like assemble.Tool, tools int, l load) error {
	if err := a.fill(tools, like); err != nil {
		return err
	}
	s, err := a.start(ctx, o)
	if err != nil {
		return err
	}
	most := 0
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watching.Err() == nil {
			n, _ := s.Mappings() // if the process is gone, judge reports it
			most = max(most, n)
			select {
			case <-watching.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	got := l.run(ctx, s)
	stop()
	<-watched
	a.tell("%v, %d mappings at most", &got, most)
	if err := got.judge(s); err != nil {
		return err
	}
	if allowed, err := maxMappings(); err != nil || most >= allowed*95/100 {
		return fmt.Errorf("%d of %d mappings were taken, the bar is 95 %%: %w", most, allowed, err)
	}
	// An idle instance can always be closed to make room for a needed one.
	if got.served < (got.served+got.refused)*9/10 {
		return errors.New("less than nine of ten calls were served")
	}
	return a.peak(s, 0)
}

func maxMappings() (int, error) {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// large is how much memory each call of these attacks takes.
const large = 50 << 20

func attackMemory(ctx context.Context, a *arena) error {
	const most = 256 << 20
	if err := a.fill(1, assemble.Tool{Grow: large, Wait: 200}); err != nil {
		return err
	}
	group, err := newCgroup(a.cgroup, most)
	var o service.Options
	if err == nil {
		a.after = append(a.after, group.remove)
		o.Cgroup = group.directory
		a.tell("in a cgroup of %d MiB", most>>20)
	} else {
		// The memory account gives guests a share of the process's memory.
		o.Server = `memory = "160MiB"`
		a.tell("NO CGROUP (%v), so [server] memory is set to 160 MiB", err)
	}
	s, err := a.start(ctx, o)
	if err != nil {
		return err
	}
	got := load{clients: 8, path: times(80, func(int) string { return path(0) })}.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.served < 16 {
		return errors.New("less than a fifth was served")
	}
	return a.peak(s, most)
}

func attackResident(ctx context.Context, a *arena) error {
	const tools, each = 40, 3
	if err := a.fill(tools, assemble.Tool{Grow: large, Wait: 100}); err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{Server: `memory = "1GiB"`, Rest: "[limits]\ntimeout = \"20s\"\n"})
	if err != nil {
		return err
	}
	got := load{clients: tools * each, path: times(5*tools*each, func(i int) string { return path(i % tools) })}.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.served < 5*tools*each/5 {
		return errors.New("less than a fifth was served")
	}
	return a.peak(s, 1400<<20)
}

func attackDescriptors(ctx context.Context, a *arena) error {
	const tools = 1500
	if err := a.fill(tools, assemble.Tool{}); err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{Files: 1024})
	if err != nil {
		return err
	}
	got := load{clients: 32, path: times(tools, path)}.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.refused > 0 {
		return fmt.Errorf("%d first calls were refused", got.refused)
	}
	n, err := s.Files()
	a.tell("%d files open afterwards", n)
	return err
}

func attackElements(ctx context.Context, a *arena) error {
	many := make([]int, 64)
	for i := range many {
		many[i] = 1 << 16
	}
	for i, elements := range [][]int{{4_190_000}, many} {
		err := a.put(assemble.Tool{Namespace: namespace, Name: fmt.Sprint("t", i), Elements: elements})
		if err != nil {
			return err
		}
	}
	var refused atomic.Int64 // for the expected reason
	each := func(line []byte) {
		if bytes.Contains(line, []byte("file refused")) && bytes.Contains(line, []byte("element")) {
			refused.Add(1)
		}
	}
	s, err := a.start(ctx, service.Options{Rest: "[limits]\ntimeout = \"500ms\"\n", Each: each})
	if err != nil {
		return err
	}
	if _, err := s.Quiet(ctx); err != nil { // calls that wait until the module is compiled would attack nothing
		return errors.Join(s.Died(), err)
	}
	got := load{clients: 8, path: times(32, func(i int) string { return path(i / 16) }), allow: []string{"tool_timeout", "not_found"}}.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.worst > 1500*time.Millisecond {
		return fmt.Errorf("a call took %v", got.worst)
	}
	a.tell("%d files refused for their elements", refused.Load())
	if got.served == 0 && refused.Load() != 2 {
		return errors.New("nothing was served, and not because of the elements: this was no attack")
	}
	return a.peak(s, 512<<20)
}
