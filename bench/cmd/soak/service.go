package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// whole tests the whole server. Its value is the number of further tools.
type whole int

// soak makes requests to the server, while one of its files is replaced again and again, and another file is added and removed.
func (further whole) soak(ctx context.Context, shelf guest.Shelf, w *watch) error {
	directory, err := os.MkdirTemp("", "toolsrv-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	c := config.Default()
	c.Server.Addresses = []string{"127.0.0.1:0"}
	c.Tools.Directory = filepath.Join(directory, "tools")
	c.Tools.CacheDir = filepath.Join(directory, "cache")
	if err := os.Mkdir(c.Tools.Directory, 0o700); err != nil {
		return err
	}
	small, err := shelf.Read(guest.Small)
	if err != nil {
		return err
	}
	r := &replacer{directory: c.Tools.Directory, small: small}
	if err := errors.Join(r.replace("add", 0), r.replace("guest", 0), shelf.Fill(c.Tools.Directory, int(further))); err != nil {
		return err
	}
	tools, err := core.Open(ctx, c, core.Options{})
	if err != nil {
		return err
	}
	s, err := server.New(ctx, (*service.Service)(tools.Handle()), server.Options{})
	if err != nil {
		return errors.Join(err, tools.Close())
	}
	running, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	var ended, replaced error
	background.Go(func() { ended = errors.Join(s.Run(running), tools.Close()) })
	background.Go(func() { replaced = r.run(running) })

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	url := "http://" + s.Addr().String()
	var turn atomic.Int64
	call := func(_ context.Context, random *rand.Rand) (time.Duration, error) {
		if further > 0 && random.IntN(2) == 0 {
			return post(client, further.next(url, &turn))
		}
		if random.IntN(20) == 0 { // 503 while files are read, since one of them may have the tool
			_, err := post(client, url+"/bench/guest", http.StatusNotFound, http.StatusServiceUnavailable)
			return 0, err
		}
		return post(client, url+"/bench/add")
	}
	if err = untilReady(ctx, client, url); err == nil {
		err = further.callAll(ctx, client, url)
	}
	if err == nil {
		err = w.drive(ctx, call)
	}
	client.CloseIdleConnections()
	stop()
	background.Wait()
	fmt.Fprintf(w.out, "http: files were replaced %d times\n", r.times)
	return errors.Join(err, ended, replaced)
}

// next is the address of the further tool whose turn it is.
func (further whole) next(url string, turn *atomic.Int64) string {
	return fmt.Sprintf("%s/bench/add%d", url, int(turn.Add(1))%int(further))
}

// callAll calls each of the further tools once before the measurements begin: after that, their memory does not grow.
func (further whole) callAll(ctx context.Context, client *http.Client, url string) error {
	var turn atomic.Int64
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for n := i; n < int(further) && errs[i] == nil && ctx.Err() == nil; n += workers {
				_, errs[i] = post(client, further.next(url, &turn))
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// untilReady waits until the tools are listed.
func untilReady(ctx context.Context, client *http.Client, url string) error {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		answer, err := client.Get(url + "/readyz")
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return ctx.Err()
}

// post calls a tool. A status other than 200 is an error unless it is allowed.
func post(client *http.Client, url string, allowed ...int) (time.Duration, error) {
	begin := time.Now()
	answer, err := client.Post(url, "application/json", strings.NewReader(guest.Input))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(allowed, answer.StatusCode) && (answer.StatusCode != http.StatusOK || string(text) != guest.Output) {
		return 0, fmt.Errorf("%s answered %s: %s", url, answer.Status, text)
	}
	return time.Since(begin), nil
}

// A replacer writes new versions of modules.
type replacer struct {
	directory string
	small     []byte
	times     int
}

// versions is the number of different modules, which are used again in turn, like files that are rolled back.
const versions = 50

// run replaces add, and adds and removes guest, until ctx ends.
func (r *replacer) run(ctx context.Context) error {
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		r.times++
		if err := r.replace("add", r.times%versions); err != nil {
			return err
		}
		var err error
		switch r.times % 10 {
		case 4:
			err = os.Remove(filepath.Join(r.directory, "guest.wasm"))
		case 9:
			err = r.replace("guest", r.times%versions)
		}
		if err != nil {
			return err
		}
	}
}

// replace replaces a tool's file by another version with a rename.
func (r *replacer) replace(tool string, version int) error {
	module, err := guest.Variant(r.small, version)
	if err != nil {
		return err
	}
	if module, err = guest.Describe(module, guest.Parameters, tool); err != nil {
		return err
	}
	path := filepath.Join(r.directory, tool+".wasm")
	if err := os.WriteFile(path+".tmp", module, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
