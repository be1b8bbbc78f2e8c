package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// The attacks on the log, on time limits, and on other callers.

func attackLog(ctx context.Context, a *arena) error {
	if err := a.fill(1, assemble.Tool{Lines: 100, Line: 1 << 20}); err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{})
	if err != nil {
		return err
	}
	const calls = 200
	before := s.Log.Bytes.Load()
	got := load{clients: 8, path: times(calls, func(int) string { return path(0) })}.run(ctx, s)
	err = errors.Join(got.judge(s), s.Stop(20*time.Second)) // so that all lines are written
	each := (s.Log.Bytes.Load() - before) / calls
	a.tell("%v, %d KiB of log for a call", &got, each>>10)
	if each > 512<<10 {
		err = errors.Join(err, fmt.Errorf("a call wrote %d KiB of log", each>>10))
	}
	return err
}

func attackOverload(ctx context.Context, a *arena) error {
	const span = 5 * time.Second
	err := errors.Join(
		a.put(assemble.Tool{Namespace: namespace, Name: "t0", Number: 1, Wait: 200}),
		a.put(assemble.Tool{Namespace: namespace, Name: "t1", Number: 2}))
	if err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{Rest: "[limits]\nconcurrency = 8\nqueue = 64\n"})
	if err != nil {
		return err
	}
	logged := s.Log.Lines.Load()
	alone, err := measureNeighbour(ctx, s.URL+path(1), span)
	if err != nil {
		return err
	}
	var crowd tally
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		crowd = load{clients: 200, path: until(done, path(0))}.run(ctx, s)
	})
	time.Sleep(time.Second)
	beside, err := measureNeighbour(ctx, s.URL+path(1), span)
	close(done)
	all.Wait()
	err = errors.Join(err, s.Stop(20*time.Second), crowd.answers())
	// Each served request has a line of its own. All lines are written now that the server has ended.
	lines := s.Log.Lines.Load() - logged - int64(alone.Served+crowd.served+beside.Served)
	a.tell("the crowd %v; the neighbour's p50 %.2f ms, %.2f alone", &crowd, beside.P50*1e3, alone.P50*1e3)
	a.tell("%d further lines of log", lines)
	if err != nil {
		return err
	}
	if crowd.refused < 1000 {
		return errors.New("hardly anything was refused: this was not an overload")
	}
	if beside.P50 > 3e-3 {
		err = fmt.Errorf("the neighbour's p50 was %.2f ms", beside.P50*1e3)
	}
	if lines > 100 {
		err = errors.Join(err, fmt.Errorf("%d lines were logged beside those of served requests", lines))
	}
	return err
}

func attackMoves(ctx context.Context, a *arena) error {
	const span = 8 * time.Second
	err := errors.Join(
		a.put(assemble.Tool{Namespace: namespace, Name: "t0", Runs: true, Bodies: []assemble.Body{assemble.Moved(3072)}}),
		a.put(assemble.Tool{Namespace: namespace, Name: "t1", Number: 1}),
		a.put(assemble.Tool{Namespace: namespace, Name: "t2", Runs: true, Bodies: []assemble.Body{assemble.Moved(1)}}))
	if err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{Rest: "[limits]\ntimeout = \"1s\"\n"})
	if err != nil {
		return err
	}
	if _, err := s.Quiet(ctx); err != nil { // compiling takes longer than a call may
		return err
	}
	crowd := func(tool int) (got tally, p50 float64, err error) {
		first := load{clients: 1, path: times(1, func(int) string { return path(tool) }), allow: []string{"tool_timeout"}}.run(ctx, s)
		var all sync.WaitGroup
		done := make(chan struct{})
		all.Go(func() {
			got = load{clients: 8, path: until(done, path(tool)), allow: []string{"tool_timeout"}}.run(ctx, s)
		})
		time.Sleep(time.Second)
		beside, err := measureNeighbour(ctx, s.URL+path(1), span)
		close(done)
		all.Wait()
		if err = errors.Join(err, first.judge(s), got.judge(s)); err == nil && got.allowed == 0 {
			err = errors.New("no call reached its limit: this was no attack")
		}
		return got, beside.P50, err
	}
	ordinary, _, err := crowd(2)
	if err != nil {
		return err
	}
	moves, p50, err := crowd(0)
	a.tell("%v, %.2f s of a loop that moves nothing; the neighbour's p50 %.1f ms", &moves, ordinary.worst.Seconds(), p50*1e3)
	if most := max(1500*time.Millisecond, 2*ordinary.worst); moves.worst > most {
		err = errors.Join(err, fmt.Errorf("a call with a limit of 1 s took %v", moves.worst))
	}
	if p50 > 50e-3 {
		err = errors.Join(err, fmt.Errorf("the neighbour's p50 was %.1f ms", p50*1e3))
	}
	return err
}

// attackSpin makes the tools of one file compute forever, with as many calls at a time as are allowed.
func attackSpin(ctx context.Context, a *arena) error {
	const tools, each, span = 400, 8, 10 * time.Second
	var manifest strings.Builder
	fmt.Fprintf(&manifest, `{"abi":1,"namespace":%q,"tools":[`, namespace)
	for i := range tools {
		if i > 0 {
			manifest.WriteByte(',')
		}
		fmt.Fprintf(&manifest, `{"name":"s%d","description":"Computes for ever.","parameters":{"type":"object"}}`, i)
	}
	manifest.WriteString("]}")
	err := errors.Join(
		a.put(assemble.Tool{Namespace: namespace, Name: "spin", Runs: true, Bodies: []assemble.Body{assemble.Endless()}, Manifest: []byte(manifest.String())}),
		a.put(assemble.Tool{Namespace: namespace, Name: "t0", Number: 1}))
	if err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{Rest: fmt.Sprintf("[limits]\nconcurrency = %d\n", each)})
	if err != nil {
		return err
	}
	alone, err := measureNeighbour(ctx, s.URL+path(0), span/4)
	if err != nil {
		return err
	}
	// beside makes a number of clients call tools that spin, and returns what the neighbour sees meanwhile.
	beside := func(clients int) (n neighbour, crowd tally, err error) {
		var all sync.WaitGroup
		done := make(chan struct{})
		next := until(done, "")
		all.Go(func() {
			crowd = load{clients: clients, allow: []string{"tool_timeout"}, path: func(i int) (string, bool) {
				_, more := next(i)
				return fmt.Sprintf("/%s/s%d", namespace, i%tools), more
			}}.run(ctx, s)
		})
		time.Sleep(2 * time.Second)
		n, err = measureNeighbour(ctx, s.URL+path(0), span)
		close(done)
		all.Wait()
		return n, crowd, errors.Join(err, crowd.judge(s))
	}
	few, _, err := beside(each)
	if err != nil {
		return err
	}
	many, crowd, err := beside(tools * each)
	a.tell("%v; the neighbour's p50 %.1f ms and p99 %.1f, beside %d calls %.1f and %.1f, alone %.1f and %.1f",
		&crowd, many.P50*1e3, many.P99*1e3, each, few.P50*1e3, few.P99*1e3, alone.P50*1e3, alone.P99*1e3)
	if err != nil {
		return err
	}
	if crowd.allowed < tools*each {
		return errors.New("not all calls reached their limit: this was no attack")
	}
	if most := max(50e-3, 8*few.P99); many.P99 > most {
		return fmt.Errorf("the neighbour's p99 was %.1f ms, the bar is %.1f", many.P99*1e3, most*1e3)
	}
	return nil
}

// neighbourCommand makes this program the neighbour: a separate process, so that its goroutine does not wait behind those of the other clients.
const neighbourCommand = "neighbour"

// A neighbour has the results of a client that makes one call after another.
type neighbour struct {
	Served int
	P50    float64 // seconds
	P99    float64
}

func measureNeighbour(ctx context.Context, url string, span time.Duration) (n neighbour, err error) {
	self, err := os.Executable()
	if err != nil {
		return n, err
	}
	cmd := exec.CommandContext(ctx, self, neighbourCommand, url, span.String())
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return n, fmt.Errorf("the neighbour failed: %w", err)
	}
	return n, json.Unmarshal(text, &n)
}

// beNeighbour calls url for a given time. It fails if the status of an answer is not 200.
func beNeighbour(arguments []string, out io.Writer) error {
	if len(arguments) != 2 {
		return errors.New("usage: attack neighbour URL SPAN")
	}
	span, err := time.ParseDuration(arguments[1])
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: hang}
	var sum tally
	for end := time.Now().Add(span); time.Now().Before(end); {
		begin := time.Now()
		code, err := call(client, arguments[0], "{}", "{}")
		if err != nil || code != "" {
			return fmt.Errorf("a call of the neighbour ended with %q: %w", code, err)
		}
		sum.add("", nil, time.Since(begin), nil)
	}
	return json.NewEncoder(out).Encode(neighbour{sum.served, sum.at(50).Seconds(), sum.at(99).Seconds()})
}
