package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	toolsrv "github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// The tools of the guest reach.rs, in its order, and what they need.
const reachManifest = `{"abi": 1, "namespace": "reach",
	"needs": {"http": ["http://127.0.0.1:%d"], "kv": true, "tools": ["bench/add"]},
	"tools": [%s]}`

var reachTools = []string{"fetch", "get", "gets", "set", "call", "nothing"}

// A service is the tools that are measured, without doors.
type service struct {
	*toolsrv.Service
	files string // the folder that has their files, and the cache
}

// service serves the guests, and grants what the configuration says. port is the port of the server to which the tool fetch sends requests.
func (b *bench) service(ctx context.Context, port int, grants string) (s *service, err error) {
	s = &service{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	c, err := config.Parse([]byte(grants), "")
	if err != nil {
		return s, err
	}
	if s.files, err = os.MkdirTemp("", "toolsrv-bench-"); err != nil {
		return s, err
	}
	c.Server.Memory, c.Tools.CacheDir = 16<<30, filepath.Join(s.files, "cache")
	c.Limits.Concurrency, c.Limits.Timeout = waitingCalls, 5*time.Minute // all calls wait that are to wait
	declared := ""
	for i, name := range reachTools {
		if i > 0 {
			declared += ","
		}
		declared += fmt.Sprintf(`{"name": %q, "description": "Measured.", "parameters": {"type": "object"}}`, name)
	}
	var files []string
	for name, said := range map[string]string{
		guest.Reach: fmt.Sprintf(reachManifest, port, declared),
		guest.Small: `{"abi": 1, "namespace": "bench", "tools": [{"name": "add", "description": "Adds.", "parameters": ` + guest.Parameters + `}]}`,
	} {
		module, err := b.guests.Read(name)
		if err == nil {
			module, err = wasmbin.SetCustom(module, manifest.Section, []byte(said))
		}
		if err != nil {
			return s, err
		}
		file := filepath.Join(s.files, filepath.Base(name))
		if err := os.WriteFile(file, module, 0o600); err != nil {
			return s, err
		}
		files = append(files, file)
	}
	if s.Service, err = toolsrv.Open(ctx, c, toolsrv.Options{Files: files, Volatile: true}); err != nil {
		return s, err
	}
	if err := s.Catalog.WaitCompiled(ctx); err != nil {
		return s, err
	}
	for _, refused := range s.Table.Current().Refused() {
		return s, fmt.Errorf("%s: %w", refused.Source, refused.Err)
	}
	return s, nil
}

func (s *service) close() error {
	var err error
	if s.Service != nil {
		err = s.Service.Close()
	}
	return errors.Join(err, os.RemoveAll(s.files))
}

// call calls a tool as a door does.
func (s *service) call(ctx context.Context, path, arguments, want string) error {
	route, err := invoke.Find(s.Table.Current(), path, wasmtools.Everybody())
	if err != nil {
		return err
	}
	result, err := s.Invoker.Call(ctx, route, &wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Everybody()})
	if err != nil {
		return err
	}
	if string(result) != want {
		return fmt.Errorf("%s returned %.100q, want %.100q", path, result, want)
	}
	return nil
}
