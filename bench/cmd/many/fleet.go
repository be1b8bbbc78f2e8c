package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/cluster"
	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

// replicas is how many servers and how many nodes of NATS there are.
const replicas = 3

// A server is one of several servers with one state. It has an admin socket.
type server struct {
	*service.Service
	over *client.Client
}

// grants grants the tools reach/* what they need.
const grants = `
[[grant]]
match = "reach/*"
http = ["http://127.0.0.1:1"]
private = ["127.0.0.1/32"]
kv = "1GiB"
tools = ["bench/add"]
`

// nodes starts the nodes.
func (b *bench) nodes(ctx context.Context) (c *cluster.Cluster, end func() error, err error) {
	directory, err := os.MkdirTemp("", "toolsrv-bench-nats-")
	if err != nil {
		return nil, nil, err
	}
	// Nodes behind a gate don't tell their addresses, so that a server that is cut off finds no other way to them.
	straight := func(_, _, port int) (int, error) { return port, nil }
	if c, err = cluster.StartThrough(ctx, replicas, directory, b.report.Log, straight); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(directory))
	}
	return c, func() error { c.Close(); return os.RemoveAll(directory) }, nil
}

// start starts a server with these tables in its configuration. The state is in NATS at the URL, or in a directory if the URL is empty.
func (b *bench) start(ctx context.Context, url, tables string) (*server, error) {
	state := ""
	if url != "" {
		state = fmt.Sprintf("[state]\nurl = %q\n", url)
	}
	s, err := service.InFolder(ctx, service.Options{Binary: b.server, Rest: state + grants + tables}, b.fill)
	if err != nil {
		return nil, err
	}
	over, err := client.OverSocket(filepath.Join(s.Directory, ".toolsrv", socket.Name))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &server{s, over}, nil
}

func (s *server) close() error {
	s.over.Close()
	return s.Close()
}

// fill writes the tools.
func (b *bench) fill(directory string) error {
	if err := b.guests.FillSmall(directory); err != nil {
		return err
	}
	module, err := b.guests.Read(guest.Reach)
	if err == nil {
		module, err = guest.DescribeReach(module, 1)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "reach.wasm"), module, 0o600)
}

// fleet starts n servers with one state in running nodes. end closes the servers.
func (b *bench) fleet(ctx context.Context, n int, tables string, url func(i int) string) (all []*server, end func() error, err error) {
	end = func() error {
		var err error
		for _, s := range all {
			err = errors.Join(err, s.close())
		}
		return err
	}
	for i := range n {
		s, err := b.start(ctx, url(i), tables)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		all = append(all, s)
	}
	return all, end, nil
}

// replicas starts nodes, and servers with one state in them. end ends all of them.
func (b *bench) replicas(ctx context.Context, tables string) (all []*server, end func() error, err error) {
	nodes, endNodes, err := b.nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, endServers, err := b.fleet(ctx, replicas, tables, func(int) string { return nodes.URL() })
	if err != nil {
		return nil, nil, errors.Join(err, endNodes())
	}
	return all, func() error { return errors.Join(endServers(), endNodes()) }, nil
}

// onAll does something with all servers at once, and returns when the last one has finished.
func onAll(all []*server, do func(i int) error) (last time.Time, err error) {
	ends, errs := make([]time.Time, len(all)), make([]error, len(all))
	var waiting sync.WaitGroup
	for i := range all {
		waiting.Go(func() {
			errs[i] = do(i)
			ends[i] = time.Now()
		})
	}
	waiting.Wait()
	return slices.MaxFunc(ends, time.Time.Compare), errors.Join(errs...)
}

// A caller calls tools of a server over one connection.
type caller struct {
	url    string
	client http.Client
}

func (s *server) caller() *caller {
	return &caller{url: s.URL, client: http.Client{Transport: &http.Transport{}}}
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// call returns the status and the body of an answer.
func (c *caller) call(ctx context.Context, path, arguments string) (int, string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(arguments))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(q)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), errors.Join(err, answer.Body.Close())
}

// must calls a tool, and fails unless the answer contains a text.
func (c *caller) must(ctx context.Context, path, arguments, want string) error {
	status, body, err := c.call(ctx, path, arguments)
	if err == nil && (status != http.StatusOK || !strings.Contains(body, want)) {
		err = fmt.Errorf("%s with %s answered %d %.300s, not %s", path, arguments, status, body, want)
	}
	return err
}

// key returns the arguments of the tools that use a key.
func key(n int) string { return fmt.Sprintf(`{"key":"%d"}`, n) }
