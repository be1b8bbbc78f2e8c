// Command scale starts the real server with many tools, from a warm cache, and prints what that takes: a row of a table
// for each number of tools.
//
//	scale -guests DIRECTORY [-server BINARY] [-tools 1000,10000]
//
// The tools are the small guest in Rust, each with another constant in its code. `make bench-scale` builds what is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	guests := flags.String("guests", "build/bench", "the directory of the built guests")
	server := flags.String("server", "bin/toolsrv", "the server's binary")
	tools := flags.String("tools", "1000,10000", "numbers of tools, separated by commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	fmt.Fprintln(out, "| tools | listening | ready | compiled | RSS idle | KiB a tool | RSS called | KiB a tool | mappings | descriptors | p50, p99 in turn | added→served |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, text := range strings.Split(*tools, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-tools: %q is not a number of tools", text)
		}
		r, err := measureScale(ctx, *server, guest.Shelf(*guests), n)
		if err != nil {
			return fmt.Errorf("%d tools: %w", n, err)
		}
		fmt.Fprintln(out, r)
	}
	return nil
}

// A row is what a number of tools takes.
type row struct {
	tools                      int
	listening, ready, compiled time.Duration // since the process began
	idle, called               int64         // bytes resident: before any call, and after one of each tool
	empty                      int64         // the same of a server that has one tool
	mappings, files            int           // after the calls
	p50, p99                   time.Duration // of a call when all tools are called in turn a second time
	added                      time.Duration // from the rename of a new file to the first answer of its tool
}

func (r row) String() string {
	each := func(n int64) int64 { return (n - r.empty) >> 10 / int64(r.tools) }
	return fmt.Sprintf("| %d | %.2f s | %.2f s | %.2f s | %d MiB | %d | %d MiB | %d | %d | %d | %.2f, %.2f ms | %.2f s |", r.tools,
		r.listening.Seconds(), r.ready.Seconds(), r.compiled.Seconds(), r.idle>>20, each(r.idle), r.called>>20, each(r.called),
		r.mappings, r.files, r.p50.Seconds()*1e3, r.p99.Seconds()*1e3, r.added.Seconds())
}

func measureScale(ctx context.Context, server string, guests guest.Shelf, n int) (r row, err error) {
	one, err := start(ctx, server, guests, 1)
	if err != nil {
		return r, err
	}
	defer one.close()
	r.tools = n
	if r.empty, _, err = one.service.Resident(); err != nil {
		return r, err
	}
	cold, err := start(ctx, server, guests, n) // fills the cache
	if err != nil {
		return r, err
	}
	defer cold.close()
	if err := cold.service.Stop(time.Minute); err != nil {
		return r, err
	}
	warm := &started{directory: cold.directory}
	if err := warm.begin(ctx, server); err != nil {
		return r, err
	}
	defer warm.close()
	s := warm.service
	r.listening, r.ready, r.compiled = warm.listening, warm.ready, warm.compiled
	if r.idle, _, err = s.Resident(); err != nil {
		return r, err
	}
	if _, err := callAll(ctx, s, n); err != nil {
		return r, err
	}
	if r.called, _, err = s.Resident(); err != nil {
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
		r.added, err = warm.add(ctx, guests, n)
	}
	return r, errors.Join(err, s.Stop(time.Minute))
}

// A started server has a directory of its own.
type started struct {
	directory                  string
	service                    *service.Service
	listening, ready, compiled time.Duration
}

// start makes a directory with n tools and starts a server on it.
func start(ctx context.Context, server string, guests guest.Shelf, n int) (*started, error) {
	directory, err := os.MkdirTemp("", "toolsrv-scale-")
	if err != nil {
		return nil, err
	}
	s := &started{directory: directory}
	err = os.Mkdir(service.Tools(directory), 0o700)
	if err == nil {
		err = guests.Fill(service.Tools(directory), n)
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

// begin starts the server, and returns once it does nothing more.
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
		_ = s.service.Stop(time.Minute) // the measurement has failed for another reason, if at all
	}
	os.RemoveAll(s.directory)
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

// add puts a new tool in the place of one file, five times, and returns the median time
// from the rename to its first answer.
func (s *started) add(ctx context.Context, guests guest.Shelf, n int) (time.Duration, error) {
	small, err := guests.Read(guest.Small)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: time.Minute}
	var took []float64
	for i := range 5 {
		// In place of another tool, so that their number stays within the server's cap.
		module, err := guest.Variant(small, n+i)
		if err != nil {
			return 0, err
		}
		name := fmt.Sprint("new", i)
		if module, err = guest.Describe(module, guest.Parameters, name); err != nil {
			return 0, err
		}
		path := filepath.Join(service.Tools(s.directory), fmt.Sprintf("add%d.wasm", i))
		if err := os.WriteFile(path+".tmp", module, 0o600); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := os.Rename(path+".tmp", path); err != nil {
			return 0, err
		}
		for served := false; !served; {
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
