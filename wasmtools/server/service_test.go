package server_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// TestReloadOfService makes a service take up a configuration by itself, but not one with a server: who is let in would be forgotten.
// Proves: A caller reaches its own tools only
func TestReloadOfService(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Server.Addresses, c.Tools.Directory, c.Tools.CacheDir, c.Auth.Tokens = []string{"127.0.0.1:0"}, t.TempDir(), t.TempDir(), []string{"s3cret"}
	of, err := service.Open(t.Context(), c, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	next := *c
	next.Tools.Disabled = []string{"a"}
	if err := of.Reload(&next); err != nil {
		t.Errorf("without a server: %v", err)
	}
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := of.Reload(c); err == nil || !strings.Contains(err.Error(), "the service has a server") {
		t.Errorf("with one: got %v", err)
	}
	if err := s.Reload(c); err != nil {
		t.Errorf("the server: %v", err)
	}
}
