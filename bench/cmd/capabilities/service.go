package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/internal/config"
	toolsrv "github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// A service runs the measured tools, without REST or MCP in front of them.
type service struct {
	*toolsrv.Service
	files string // the folder with their files and the cache
}

// service serves the guests with the grants of the configuration. port is the port of the server to which the tool fetch sends requests.
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
	c.Limits.Concurrency, c.Limits.Timeout = waitingCalls, 5*time.Minute // so that all calls that should wait can do so
	var files []string
	for name, describe := range map[string]func([]byte) ([]byte, error){
		guest.Reach: func(module []byte) ([]byte, error) { return guest.DescribeReach(module, port) },
		guest.Small: func(module []byte) ([]byte, error) { return guest.Describe(module, guest.Parameters, "add") },
	} {
		module, err := b.guests.Read(name)
		if err == nil {
			module, err = describe(module)
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

// call calls a tool as REST and MCP do.
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
