package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/broker"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// The tools of the guest reach.rs, in its order, and what they need.
const reachManifest = `{"abi": 1, "namespace": "reach",
	"needs": {"http": ["http://127.0.0.1:%d"], "kv": true, "tools": ["bench/add"]},
	"tools": [%s]}`

var reachTools = []string{"fetch", "get", "gets", "set", "call", "nothing"}

// A service is tools with their grants, as a server has them below its doors.
type service struct {
	engine  *sandbox.Engine
	broker  *broker.Broker
	modules []*toolfile.Module
	table   *wasmtools.RouteTable
	invoker *invoke.Invoker
}

// service loads the guests, and grants what the configuration says. port is the port of the server to which the tool fetch sends requests.
func (b *bench) service(ctx context.Context, port int, grants string) (s *service, err error) {
	s = &service{invoker: invoke.New(invoke.Options{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	c, err := config.Parse([]byte(grants), "")
	if err != nil {
		return s, err
	}
	if s.engine, err = sandbox.New(ctx, sandbox.Config{Imports: toolfile.Imports(), Memory: 16 << 30}); err != nil {
		return s, err
	}
	s.broker, err = broker.Open(c, broker.Options{Invoker: s.invoker, Table: func() *wasmtools.RouteTable { return s.table }, Volatile: true})
	if err != nil {
		return s, err
	}
	granted, err := s.broker.Grants(c)
	if err != nil {
		return s, err
	}
	declared := ""
	for i, name := range reachTools {
		if i > 0 {
			declared += ","
		}
		declared += fmt.Sprintf(`{"name": %q, "description": "Measured.", "parameters": {"type": "object"}}`, name)
	}
	var tools []*wasmtools.Tool
	for name, manifest := range map[string]string{
		guest.Reach: fmt.Sprintf(reachManifest, port, declared),
		guest.Small: `{"abi": 1, "namespace": "bench", "tools": [{"name": "add", "description": "Adds.", "parameters": ` + guest.Parameters + `}]}`,
	} {
		module, err := b.guests.Read(name)
		if err == nil {
			module, err = wasmbin.SetCustom(module, wasmtools.ManifestSection, []byte(manifest))
		}
		if err != nil {
			return s, err
		}
		m, err := toolfile.Load(s.engine, module, toolfile.Place{Source: name})
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		s.modules = append(s.modules, m)
		if err := m.Compile(ctx); err != nil {
			return s, err
		}
		if err := m.Build(limitsOf, granted); err != nil {
			return s, err
		}
		tools = append(tools, m.Tools()...)
	}
	s.table, err = wasmtools.NewRouteTable(tools...)
	return s, err
}

// limitsOf lets all calls wait that are to wait.
func limitsOf(string) limits.Limits {
	return limits.Limits{Concurrency: waitingCalls, Timeout: 5 * time.Minute}
}

func (s *service) close(ctx context.Context) error {
	for _, m := range s.modules {
		m.Close()
	}
	var errs []error
	if s.engine != nil {
		errs = append(errs, s.engine.Close(ctx))
	}
	if s.broker != nil {
		errs = append(errs, s.broker.Close())
	}
	return errors.Join(errs...)
}

// call calls a tool as a door does.
func (s *service) call(ctx context.Context, path, arguments, want string) error {
	route, err := invoke.Find(s.table.Current(), path, wasmtools.Everybody())
	if err != nil {
		return err
	}
	result, err := s.invoker.Call(ctx, route, &wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Everybody()})
	if err != nil {
		return err
	}
	if string(result) != want {
		return fmt.Errorf("%s returned %.100q, want %.100q", path, result, want)
	}
	return nil
}
