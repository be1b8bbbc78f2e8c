package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/cluster"
	"github.com/toolsrv/toolsrv/bench/internal/gate"
	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

//go:embed tools.js
var tools []byte

const (
	replicas = 3
	nodes    = 3
	// diskSize is how much a NATS node can store: more than all that is written in ten minutes.
	diskSize = 768 << 20
)

// A world has everything that runs: nodes, servers, the balancer, and gates between them.
type world struct {
	options
	directory string
	nodes     *cluster.Cluster
	between   map[[2]int]*gate.Gate // gates from one node to another
	to        map[[2]int]*gate.Gate // gates from a server to a node
	replicas  []*replica
	balancer  *balancer
	token     string
	operator  operator
	book      *book
	beside    []trial
	current   bool // all servers have this version
}

// A replica is a server that can be started again.
type replica struct {
	*backend
	options service.Options

	mu      sync.Mutex
	service *service.Service // nil if it does not run
	over    *client.Client
}

// begin starts all of it.
func begin(ctx context.Context, o options) (w *world, err error) {
	w = &world{options: o, between: map[[2]int]*gate.Gate{}, to: map[[2]int]*gate.Gate{}}
	w.book = &book{world: w}
	w.operator = operator{made: map[string]string{}, revoked: map[string]string{}, unsure: map[string]bool{}, book: w.book}
	w.beside, w.current = w.trials(), o.old == ""
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.directory, err = os.MkdirTemp("", "toolsrv-chaos-"); err != nil {
		return w, err
	}
	for i := range nodes {
		disk := w.disk(i)
		if err := os.MkdirAll(disk, 0o700); err != nil {
			return w, err
		}
		if w.mounts {
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
				w.mounts = false
				fmt.Fprintf(w.log, "# no disk can be mounted here, so none will be full: %v\n", err)
			}
		}
	}
	w.nodes, err = cluster.StartThrough(ctx, nodes, filepath.Join(w.directory, "nats"), w.log, func(from, to, port int) (int, error) {
		return w.gate(w.between, from, to, fmt.Sprintf("127.0.0.1:%d", port))
	})
	if err != nil {
		return w, err
	}
	var names []string
	for i := range replicas {
		names = append(names, fmt.Sprint("server", i))
	}
	w.balancer = newBalancer(names...)
	binary, tables := w.server, withShelf
	if w.old != "" {
		binary, tables = w.old, ""
	}
	for i := range replicas {
		url := "nats://"
		for j := range nodes {
			port, err := w.gate(w.to, i, j, w.nodes.Host(j))
			if err != nil {
				return w, err
			}
			url += fmt.Sprintf("127.0.0.1:%d,", port)
		}
		r := &replica{backend: w.balancer.backends[i], options: service.Options{
			Binary: binary, Directory: filepath.Join(w.directory, names[i]),
			Rest: fmt.Sprintf("scripts = true\n[state]\nurl = %q\n[[grant]]\nmatch = \"chaos/*\"\nkv = \"256MiB\"\n", strings.TrimSuffix(url, ",")) + tables,
		}}
		w.replicas = append(w.replicas, r)
		if err := os.MkdirAll(service.Tools(r.options.Directory), 0o700); err != nil {
			return w, err
		}
		if err := os.WriteFile(filepath.Join(service.Tools(r.options.Directory), "chaos.js"), tools, 0o600); err != nil {
			return w, err
		}
		if err := r.start(ctx); err != nil {
			return w, err
		}
	}
	answer, err := w.replicas[0].admin().Do(ctx, "tokens add", admin.NewToken{Name: "load", Scopes: []string{"chaos/*", "shelf/*"}}, "")
	if err != nil {
		return w, err
	}
	var made admin.TokenMade
	if err := answer.Into(&made); err != nil {
		return w, err
	}
	w.token = made.Secret
	return w, nil
}

// disk is the folder of a node.
func (w *world) disk(i int) string { return filepath.Join(w.directory, "nats", fmt.Sprint("node", i)) }

// gate opens a gate, and returns its port.
func (w *world) gate(in map[[2]int]*gate.Gate, from, to int, address string) (int, error) {
	g, err := gate.New(address)
	if err != nil {
		return 0, err
	}
	in[[2]int{from, to}] = g
	var port int
	_, err = fmt.Sscanf(g.Address(), "127.0.0.1:%d", &port)
	return port, err
}

// close ends all of it.
func (w *world) close() error {
	var err error
	for _, g := range w.to {
		g.Open()
	}
	for _, r := range w.replicas {
		r.kill()
	}
	if w.balancer != nil {
		w.balancer.close()
	}
	if w.nodes != nil {
		w.nodes.Close()
	}
	for _, all := range []map[[2]int]*gate.Gate{w.to, w.between} {
		for _, g := range all {
			err = errors.Join(err, g.Close())
		}
	}
	if w.mounts {
		for i := range nodes {
			err = errors.Join(err, syscall.Unmount(w.disk(i), syscall.MNT_DETACH))
		}
	}
	return errors.Join(err, os.RemoveAll(w.directory))
}

// start starts a server that is not running, and returns when it accepts calls and has compiled its tools.
func (r *replica) start(ctx context.Context) error {
	s, err := service.Start(ctx, r.options)
	if err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	over, err := client.OverSocket(filepath.Join(r.options.Directory, ".toolsrv", socket.Name))
	if err != nil {
		s.Kill()
		return err
	}
	r.mu.Lock()
	r.service, r.over = s, over
	r.mu.Unlock()
	if err := s.Ready(ctx); err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	r.set(s.URL)
	r.leaving.Store(false)
	return nil
}

// kill ends the process, if there is one.
func (r *replica) kill() {
	r.mu.Lock()
	s, over := r.service, r.over
	r.service, r.over = nil, nil
	r.mu.Unlock()
	if s != nil {
		s.Kill()
		over.Close()
	}
}

// stop removes the server from the balancer, and ends it with SIGTERM.
func (r *replica) stop(ctx context.Context) error {
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	s, over := r.service, r.over
	r.service, r.over = nil, nil
	r.mu.Unlock()
	over.Close()
	return s.Stop(40 * time.Second)
}

// process returns the process, or nil.
func (r *replica) process() *service.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.service
}

// admin returns the client of the admin socket, or nil.
func (r *replica) admin() *client.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// agreed waits until a change that one server has confirmed is in force on all servers, and none of them reports any trouble.
func (w *world) agreed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 90*time.Second, errors.New("the servers did not agree in 90 s"))
	defer cancel()
	var last error
	pause := func(err error) error {
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(10 * time.Millisecond):
			return nil
		}
	}
	for _, r := range w.replicas {
		for { // each server accepts a change
			reason := fmt.Sprint("agreed ", time.Now().UnixNano())
			if _, err := r.admin().Do(ctx, "disable", admin.Switched{Names: []string{"chaos/marked"}, Reason: reason}, ""); err != nil {
				if err := pause(fmt.Errorf("%s: %w", r.name, err)); err != nil {
					return err
				}
				continue
			}
			for _, other := range w.replicas { // and has it
				for {
					found, err := marked(ctx, other, reason)
					if found {
						break
					}
					if err := pause(fmt.Errorf("%s does not have the change of %s: %w", other.name, r.name, errors.Join(err))); err != nil {
						return err
					}
				}
			}
			break
		}
	}
	return nil
}

func marked(ctx context.Context, r *replica, reason string) (bool, error) {
	var s admin.Switches
	answer, err := r.admin().Do(ctx, "switches", struct{}{}, "")
	if err == nil {
		err = answer.Into(&s)
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(s.Switches, func(one admin.Switch) bool { return one.Reason == reason }), nil
}

// verify returns how each server differs from what callers and the operator were told. There must be no calls and no changes meanwhile.
func (w *world) verify(ctx context.Context, l *ledger, prefix string) (wrong []string) {
	asks := &http.Client{Transport: &http.Transport{}}
	defer asks.CloseIdleConnections()
	o := &w.operator
	for _, r := range w.replicas {
		say := func(format string, arguments ...any) {
			wrong = append(wrong, r.name+": "+fmt.Sprintf(format, arguments...))
		}
		url := *r.url.Load()
		for _, one := range o.compare(ctx, r.admin()) {
			say("%s", one)
		}
		for status, all := range map[int]map[string]string{http.StatusOK: o.made, http.StatusUnauthorized: o.revoked} {
			tried := 0
			for name, secret := range all {
				if a := call(ctx, asks, url, secret, "add", map[string]any{"a": 1, "b": 2}); a.status != status {
					say("the token %s gets %d, not %d: %v %.200s", name, a.status, status, a.err, a.body)
				}
				if tried++; tried == 20 {
					break
				}
			}
		}
		a := call(ctx, asks, url, w.token, "switched", struct{}{})
		if !o.doubt && (a.status == http.StatusOK) != o.on {
			say("the switch is forgotten: the tool answers %d, and it was switched %t", a.status, o.on)
		}
		for i := range workers {
			at := fmt.Sprintf("%s/%d/", prefix, i)
			a := call(ctx, asks, url, w.token, "keys", map[string]any{"prefix": at})
			if a.err != nil || a.status != http.StatusOK {
				say("its keys can't be listed: %d %v %.200s", a.status, a.err, a.body)
				continue
			}
			gone := 0
			for key := range l.put {
				if strings.HasPrefix(key, at) && !strings.Contains(a.body, `"`+key+`"`) {
					gone++
				}
			}
			if gone > 0 {
				say("%d keys whose writes were confirmed are gone", gone)
			}
		}
	}
	return wrong
}
