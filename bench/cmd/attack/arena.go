package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// An arena is the server, the directory and the output of one attack.
type arena struct {
	directory string
	binary    string
	cgroup    string
	facts     []string // observations for the attack's line
	running   []*service.Service
	after     []func()
}

// tell adds an observation to the attack's line.
func (a *arena) tell(format string, arguments ...any) {
	a.facts = append(a.facts, fmt.Sprintf(format, arguments...))
}

// start starts the server on the arena's directory.
func (a *arena) start(ctx context.Context, o service.Options) (*service.Service, error) {
	o.Binary, o.Directory = a.binary, a.directory
	s, err := service.Start(ctx, o)
	if err != nil && strings.Contains(o.Server, "memory") && strings.Contains(err.Error(), `unknown key "memory"`) {
		a.tell("no key server.memory")
		o.Server = ""
		s, err = service.Start(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	a.running = append(a.running, s)
	return s, s.Ready(ctx)
}

// close stops the server. A server that does not drain in time, or had ended before, has missed the bar.
func (a *arena) close() error {
	var errs []error
	for _, s := range a.running {
		errs = append(errs, s.Stop(20*time.Second))
	}
	for _, f := range a.after {
		f()
	}
	return errors.Join(errs...)
}

// put writes a tool's module to the tools directory, with a rename.
func (a *arena) put(t assemble.Tool) error {
	module, err := t.Module()
	if err != nil {
		return err
	}
	directory := service.Tools(a.directory)
	path := filepath.Join(directory, t.Name+".wasm")
	return errors.Join(os.MkdirAll(directory, 0o700), os.WriteFile(path+".tmp", module, 0o600), os.Rename(path+".tmp", path))
}

// fill writes n tools that differ in their code: attack/t0 and so on.
func (a *arena) fill(n int, like assemble.Tool) error {
	for i := range n {
		like.Namespace, like.Name, like.Number = namespace, fmt.Sprint("t", i), int32(1<<20+i)
		if err := a.put(like); err != nil {
			return err
		}
	}
	return nil
}

// namespace is the namespace of all tools here.
const namespace = "attack"

// path is the path of tool number i of fill.
func path(i int) string { return fmt.Sprintf("/%s/t%d", namespace, i) }

// peak reports the most memory that the server had, and fails if that is more than "most" bytes. If most is 0, there is no limit.
func (a *arena) peak(s *service.Service, most int64) error {
	_, peak, err := s.Resident()
	if err != nil {
		return errors.Join(s.Died(), err)
	}
	a.tell("%d MiB at most", peak>>20)
	if most > 0 && peak > most {
		return fmt.Errorf("%d MiB were resident, the bar is %d", peak>>20, most>>20)
	}
	return nil
}
