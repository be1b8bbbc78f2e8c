package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// TestReloadOfService checks that a service can reload its configuration by itself, but not if it has a server, since the rules on who is
// let in would be left out.
// Proves: A caller reaches its own tools only
func TestReloadOfService(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	parse := func(more string) *config.Config {
		c, err := config.Parse([]byte("server.address = '127.0.0.1:0'\nauth.tokens = ['s3cret']\ntools.directory = '.'\ntools.cache_directory = '.cache'\n"+more), directory)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := parse("")
	of, err := service.Open(t.Context(), c, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	if err := of.Reload(parse("tools.disabled = ['a']")); err != nil {
		t.Errorf("without a server: %v", err)
	}
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := of.Reload(c); err == nil || !strings.Contains(err.Error(), "the service has a server") {
		t.Errorf("with a server: got %v", err)
	}
	if err := s.Reload(c); err != nil {
		t.Errorf("the server: %v", err)
	}
}

// TestMadeConfiguration checks that a configuration is refused if it was not read from a file or a text, since nobody knows whom it lets in.
func TestMadeConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*config.Config{"none": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "made by Load or Parse") {
					t.Errorf("got %s", got)
				}
			}()
			if s, err := service.Open(t.Context(), c, service.Options{}); err == nil {
				s.Close()
			}
		})
	}
}

// TestTokensOfText checks that token files named in a configuration's text are read, as for a file: nobody is let in without a token.
func TestTokensOfText(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	text := []byte("auth.tokens_file = 'tokens'")
	if _, err := config.Parse(text, directory); err == nil || !strings.Contains(err.Error(), "configuration:1:") || !strings.Contains(err.Error(), "auth.tokens_file") {
		t.Errorf("without the file: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(directory, "tokens"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(append(text, "\nserver.address = '127.0.0.1:0'\ntools.directory = '.'\ntools.cache_directory = '.cache'"...), directory)
	if err != nil {
		t.Fatal(err)
	}
	of, err := service.Open(t.Context(), c, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	answer, err := http.Get("http://" + s.Addr().String() + "/tools")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: got %d, want 401", answer.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
