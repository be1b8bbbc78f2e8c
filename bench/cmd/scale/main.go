// Command scale starts the real server with many tools, from an empty cache and then from a warm one, or with many tokens, and prints what that
// costs: a row of a table for each number of them.
//
//	scale -guests DIRECTORY [-server BINARY] [-tools 1000,10000]
//	scale -guests DIRECTORY [-server BINARY] -changes [-tools 1000,10000,30000]
//	scale -engine python [-server BINARY] [-tools 2,10,100]
//	scale -guests DIRECTORY [-server BINARY] -principals 1,1000,10000,99000
//
// The tools are the small guest in Rust, each with a different constant in its code, or scripts of an engine. `make bench-scale` builds
// what is needed. The server keeps up to 256 MiB of garbage, unless GOGC is set.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

func main() { os.Exit(measure.Main("scale", run, nil)) }

func run(ctx context.Context, arguments []string, out, _ io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	guests := flags.String("guests", "build/bench", "the directory of the built guests")
	server := flags.String("server", "bin/toolsrv", "the server's binary")
	tools := flags.String("tools", "", "numbers of tools, separated by commas; the default is 1000,10000, or 2,10,100 with -engine")
	name := flags.String("engine", "", "the engine of the tools' scripts")
	cold := flags.String("scripts", "", "start a server with this many scripts of an engine, in place of tools")
	changes := flags.Bool("changes", false, "measure what changes take, in place of starts")
	tokens := flags.String("principals", "", "numbers of tokens, separated by commas, in place of tools")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *tokens != "" {
		return manyPrincipals(ctx, *server, guest.Shelf(*guests), *tokens, out)
	}
	if *cold != "" {
		return manyScripts(ctx, *server, *name, *cold, out)
	}
	var makes maker
	var err error
	if *name != "" {
		makes, err = scripts(*name)
	} else {
		makes, err = variants(guest.Shelf(*guests))
	}
	if err != nil {
		return err
	}
	if *changes {
		return whatChanges(ctx, *server, makes, cmp.Or(*tools, "1000,10000,30000"), out)
	}
	if *tools == "" {
		if *tools = "1000,10000"; *name != "" {
			*tools = "2,10,100"
		}
	}
	fmt.Fprintln(out, "| tools | compilations | cold | listening | ready | compiled | resident idle | KiB a tool | called | KiB a tool | mappings | descriptors | p50, p99 in turn | added→served |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, text := range strings.Split(*tools, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			return fmt.Errorf("-tools: %q is not a number of tools, 2 at least", text)
		}
		r, err := measureScale(ctx, *server, makes, n)
		if err != nil {
			return fmt.Errorf("%d tools: %w", n, err)
		}
		fmt.Fprintln(out, r)
	}
	return nil
}

// A row has the costs of a number of tools.
type row struct {
	tools                      int
	compilations               int           // entries in the cache after the first start
	cold                       time.Duration // from that start until the server was idle
	listening, ready, compiled time.Duration // since the process began
	idle, called               int64         // bytes resident: before any call, and after two of each tool
	oneIdle, oneCalled         int64         // the same for a server with one tool
	mappings, files            int           // after the calls
	p50, p99                   time.Duration // the time of a call when all tools are called in turn a second time
	added                      time.Duration // from the rename of a new file to the first answer of its tool
}

func (r row) String() string {
	each := func(n, one int64) int64 { return (n - one) >> 10 / int64(r.tools-1) }
	return fmt.Sprintf("| %d | %d | %.2f s | %.2f s | %.2f s | %.2f s | %d MiB | %d | %d MiB | %d | %d | %d | %.2f, %.2f ms | %.3f s |", r.tools, r.compilations,
		r.cold.Seconds(), r.listening.Seconds(), r.ready.Seconds(), r.compiled.Seconds(), r.idle>>20, each(r.idle, r.oneIdle), r.called>>20, each(r.called, r.oneCalled),
		r.mappings, r.files, r.p50.Seconds()*1e3, r.p99.Seconds()*1e3, r.added.Seconds())
}

// A maker makes a module with one tool, bench/name. Modules with different numbers differ.
type maker func(number int, name string) ([]byte, error)

// variants makes variants of the small guest.
func variants(guests guest.Shelf) (maker, error) {
	small, err := guests.Read(guest.Small)
	if err != nil {
		return nil, err
	}
	return func(number int, name string) ([]byte, error) {
		module, err := guest.Variant(small, number)
		if err != nil {
			return nil, err
		}
		return guest.Describe(module, guest.Parameters, name)
	}, nil
}

func measureScale(ctx context.Context, server string, makes maker, n int) (r row, err error) {
	one, err := startWarm(ctx, server, makes, 1)
	if err != nil {
		return r, err
	}
	defer one.close()
	r.tools = n
	if r.oneIdle, r.oneCalled, err = one.resident(ctx, 1); err != nil {
		return r, err
	}
	if err := one.service.Stop(time.Minute); err != nil {
		return r, err
	}
	warm, err := startWarm(ctx, server, makes, n)
	if err != nil {
		return r, err
	}
	defer warm.close()
	s := warm.service
	r.cold, r.listening, r.ready, r.compiled = warm.cold, warm.listening, warm.ready, warm.compiled
	if r.compilations, err = entries(warm.directory); err != nil {
		return r, err
	}
	if r.idle, r.called, err = warm.resident(ctx, n); err != nil {
		return r, err
	}
	again, err := callAll(ctx, s, n)
	if err != nil {
		return r, err
	}
	r.p50, r.p99 = measure.Percentile(again, 50), measure.Percentile(again, 99)
	r.mappings, err = s.Mappings()
	if err == nil {
		r.files, err = s.Files()
	}
	if err == nil {
		r.added, err = warm.add(ctx, makes, n)
	}
	return r, errors.Join(err, s.Stop(time.Minute))
}

// startWarm is start with a cache that an earlier start has filled.
func startWarm(ctx context.Context, server string, makes maker, n int) (*started, error) {
	s, err := start(ctx, server, makes, n)
	if err != nil {
		return nil, err
	}
	s.cold = s.compiled
	if err = s.service.Stop(time.Minute); err == nil {
		err = s.begin(ctx, server)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// A started server has a directory of its own.
type started struct {
	directory                  string
	service                    *service.Service
	cold                       time.Duration // how many modules a start with an empty cache has compiled
	listening, ready, compiled time.Duration
}

// start makes a directory with the tools bench/add0 and so on, n of them, and starts a server on it.
func start(ctx context.Context, server string, makes maker, n int) (*started, error) {
	directory, err := os.MkdirTemp("", "toolsrv-scale-")
	if err != nil {
		return nil, err
	}
	s := &started{directory: directory}
	err = os.Mkdir(service.Tools(directory), 0o700)
	for i := range n {
		if err == nil {
			err = write(service.Tools(directory), fmt.Sprint("add", i), i, makes)
		}
	}
	if err == nil {
		err = s.begin(ctx, server)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// begin starts the server, and returns when it is idle.
func (s *started) begin(ctx context.Context, server string) (err error) {
	begin := time.Now()
	s.service, err = service.Start(ctx, service.Options{Binary: server, Directory: s.directory})
	if err != nil {
		return err
	}
	s.listening = time.Since(begin)
	if err := s.service.Ready(ctx); err != nil {
		return err
	}
	s.ready = time.Since(begin)
	rest, err := s.service.Quiet(ctx)
	s.compiled = s.ready + rest
	return err
}

func (s *started) close() {
	if s.service != nil {
		_ = s.service.Stop(time.Minute) // if the measurement failed, it was for another reason
	}
	os.RemoveAll(s.directory)
}

// resident returns how much memory the server has before any call, and after two calls of each of n tools.
func (s *started) resident(ctx context.Context, n int) (idle, called int64, err error) {
	if idle, _, err = s.service.Resident(); err != nil {
		return 0, 0, err
	}
	for range 2 {
		if _, err := callAll(ctx, s.service, n); err != nil {
			return 0, 0, err
		}
	}
	called, _, err = s.service.Resident()
	return idle, called, err
}

// entries returns how many entries the cache of a directory has.
func entries(directory string) (n int, err error) {
	files, err := os.ReadDir(service.Cache(directory))
	for _, f := range files {
		if len(f.Name()) == 64 {
			n++
		}
	}
	return n, err
}

// write writes a module to a directory.
func write(directory, name string, number int, makes maker) error {
	module, err := makes(number, name)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, name+".wasm"), module, 0o600)
}

// callAll calls each tool once, on eight connections, and returns how long the calls took.
func callAll(ctx context.Context, s *service.Service, n int) (times []time.Duration, err error) {
	const clients = 8
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	lists, errs := make([][]time.Duration, clients), make([]error, clients)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := c; i < n && errs[c] == nil && ctx.Err() == nil; i += clients {
				begin := time.Now()
				var served bool
				served, errs[c] = call(client, s.URL, fmt.Sprint("add", order[i]))
				if errs[c] == nil && !served {
					errs[c] = fmt.Errorf("tool add%d is not served", order[i])
				}
				lists[c] = append(lists[c], time.Since(begin))
			}
		})
	}
	all.Wait()
	for _, l := range lists {
		times = append(times, l...)
	}
	return times, errors.Join(append(errs, s.Died(), ctx.Err())...)
}

// call reports whether the tool is served.
func call(client *http.Client, url, tool string) (bool, error) {
	answer, err := client.Post(url+"/bench/"+tool, "application/json", strings.NewReader(guest.Input))
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return false, err
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusServiceUnavailable:
		return false, nil
	case answer.StatusCode != http.StatusOK || string(text) != guest.Output:
		return false, fmt.Errorf("%s answered %s: %s", tool, answer.Status, text)
	}
	return true, nil
}

// add replaces a file by a new tool, five times, and returns the median time from the rename to the tool's first answer. Before that, the server has
// compiled nothing for a while.
func (s *started) add(ctx context.Context, makes maker, n int) (time.Duration, error) {
	client := &http.Client{Timeout: time.Minute}
	aside := filepath.Join(s.directory, "aside")
	if err := os.Mkdir(aside, 0o700); err != nil {
		return 0, err
	}
	var took []float64
	for i := range 5 {
		name := fmt.Sprint("new", i)
		if err := write(aside, name, n+i, makes); err != nil {
			return 0, err
		}
		if err := s.service.EndHelpers(); err != nil {
			return 0, err
		}
		// A file that was written at the moment of its rename looks as if it was written in place.
		time.Sleep(50 * time.Millisecond)
		begin := time.Now()
		// It replaces another tool, so that the number of tools stays within the server's limit.
		if err := os.Rename(filepath.Join(aside, name+".wasm"), filepath.Join(service.Tools(s.directory), fmt.Sprintf("add%d.wasm", i%n))); err != nil {
			return 0, err
		}
		for served := false; !served; {
			var err error
			if served, err = call(client, s.service.URL, name); err != nil {
				return 0, err
			}
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			time.Sleep(2 * time.Millisecond)
		}
		took = append(took, float64(time.Since(begin)))
	}
	return time.Duration(measure.Median(took)), nil
}
