package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// loadCommand makes this program a load generator: a process of its own, so that the server's scheduler and collector
// serve the server alone.
const loadCommand = "load"

// loaded is what a load generator has seen.
type loaded struct {
	Requests int
	Rate     float64 // requests per second
	P50, P99 float64 // seconds of one request
}

// http compares a sandboxed tool with a Go function that does the same, behind the same router and validation.
func (b *bench) http(ctx context.Context) error {
	small, err := b.module(guest.Small)
	if err != nil {
		return err
	}
	sandboxed, err := b.serve(ctx, func(directory string) error { return put(directory, small, guest.Parameters, "add") })
	if err != nil {
		return err
	}
	defer sandboxed.close(ctx)
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{
		Namespace: "bench", Name: "add", Description: "A tool of the benchmarks.",
		Parameters: schema.MustCompile(guest.Parameters), Caller: wasmtools.CallerFunc(add),
	})
	if err != nil {
		return err
	}
	native, err := newService(table, func() {})
	if err != nil {
		return err
	}
	defer native.close(ctx)
	const connections = 16
	ratios, rates := make([]float64, b.rounds), make([]float64, b.rounds)
	for i := range ratios {
		ours, err := b.generate(ctx, sandboxed.url("/bench/add"), connections, time.Second)
		if err != nil {
			return err
		}
		theirs, err := b.generate(ctx, native.url("/bench/add"), connections, time.Second)
		if err != nil {
			return err
		}
		ratios[i], rates[i] = ours.Rate/theirs.Rate, ours.Rate
	}
	b.explain("HTTP on loopback, %d kept-alive connections from a second process on the same cores: %.0f calls/s of the sandboxed tool", connections, measure.Median(rates))
	b.figure("http_vs_native", measure.Median(ratios))
	b.figure("http_calls_per_s", measure.Median(rates))
	return nil
}

// add is small.rs in Go.
func add(_ context.Context, call *wasmtools.Call) ([]byte, error) {
	var in struct{ A, B int64 }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, in.A+in.B, 10), nil
}

// generate has a process of its own make requests.
func (b *bench) generate(ctx context.Context, url string, connections int, span time.Duration) (l loaded, err error) {
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	c := exec.CommandContext(ctx, self, loadCommand, "-url", url, "-connections", strconv.Itoa(connections), "-span", span.String())
	c.Stderr = b.log
	text, err := c.Output()
	if err != nil {
		return l, fmt.Errorf("generate load: %w", err)
	}
	return l, json.Unmarshal(text, &l)
}

// load is the load generator.
func load(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet(loadCommand, flag.ContinueOnError)
	address := flags.String("url", "", "where to")
	connections := flags.Int("connections", 1, "how many at a time")
	span := flags.Duration("span", time.Second, "for how long, after a tenth of that unmeasured")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	target, err := url.Parse(*address)
	if err != nil {
		return err
	}
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		target.Path, target.Host, len(input), input)
	begin := time.Now().Add(*span / 10)
	end := begin.Add(*span)
	lists, errs := make([][]time.Duration, *connections), make([]error, *connections)
	var all sync.WaitGroup
	for i := range *connections {
		all.Go(func() { lists[i], errs[i] = requests(target.Host, request, begin, end) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var list []time.Duration
	for _, l := range lists {
		list = append(list, l...)
	}
	if len(list) == 0 {
		return errors.New("not one request was answered in time")
	}
	return json.NewEncoder(out).Encode(loaded{
		Requests: len(list), Rate: float64(len(list)) / span.Seconds(),
		P50: measure.Percentile(list, 50).Seconds(), P99: measure.Percentile(list, 99).Seconds(),
	})
}

// requests makes one request after the other on one connection until end, and returns the times of those that began
// after begin. It reads answers no further than it must: its own time is time that the server does not get.
func requests(host string, request []byte, begin, end time.Time) ([]time.Duration, error) {
	c, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(end.Add(30 * time.Second)); err != nil {
		return nil, err
	}
	var list []time.Duration
	r := bufio.NewReader(c)
	for {
		start := time.Now()
		if start.After(end) {
			return list, nil
		}
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		if err := answer(r); err != nil {
			return nil, err
		}
		if start.After(begin) {
			list = append(list, time.Since(start))
		}
	}
}

// answer reads an answer and checks that it is the sum.
func answer(r *bufio.Reader) error {
	length, status := -1, []byte(nil)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if status == nil {
			status = bytes.Clone(line)
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 || length > r.Size() {
		return fmt.Errorf("%s with a body of %d bytes", status, length)
	}
	body, err := r.Peek(length)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) || string(body) != output {
		return fmt.Errorf("got %s %s, want %d %s", status, body, http.StatusOK, output)
	}
	_, err = r.Discard(length)
	return err
}
