package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/brought"
	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/internal/versions"
)

// A State is where a process keeps what outlives a call: one store for everything. It is safe for concurrent use.
type State struct {
	volatile bool // the state is in memory if no configuration names a directory
	logger   *slog.Logger

	mu        sync.Mutex
	store     state.Store // nil if it has not been opened yet
	directory string      // the directory of store; empty if it has none
	url       string      // the URL of store; empty if it is not in NATS
}

// forms are the newest forms of records that this program knows, by space.
func forms() map[string]byte {
	return map[string]byte{audit.Space: audit.Form, signing.Space: signing.Form, tokens.Space: tokens.Form, switches.Space: switches.Form, brought.Space: brought.Form, versions.Space: versions.Form, catalog.PathsSpace: catalog.PathsForm}
}

// For returns the store for a configuration, or nil. The first configuration that names a directory opens the store. A store in an implied directory
// is opened when it is first used. An open store stays until the process ends, whatever a later configuration says. If the configuration has a
// listener, clients are waiting already, and tools that keep nothing should work. So it is not an error then if the store can't be opened: the store
// is then treated like one that was lost after the start or, if it is in NATS, continues to try to connect.
func (s *State) For(c *config.Config) (state.Store, error) { return s.open(context.Background(), c) }

// looked is like For, but opens nothing: a store that is not open yet is treated as empty.
func (s *State) looked(c *config.Config) state.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil && (s.volatile || c.State.Directory != "" || c.State.URL != "") {
		return memory.New()
	}
	return s.store
}

// waitForNATS is how long a start waits for NATS servers that do not answer yet.
const waitForNATS = 30 * time.Second

// inNATS returns what a configuration says about a state in NATS.
func inNATS(c *config.Config, log *slog.Logger) nats.Options {
	of := &c.State
	return nats.Options{URL: of.URL, Credentials: of.Credentials, CA: of.CA, Certificate: of.Certificate, Key: of.Key, Prefix: of.Prefix, Log: log, Forms: forms()}
}

// openNATS opens a state in NATS.
func (s *State) openNATS(ctx context.Context, c *config.Config) (state.Store, error) {
	store := nats.Begin(inNATS(c, s.logger))
	s.logger.Info("state is in NATS", "url", c.State.URL, "bucket", c.State.Prefix)
	ctx, cancel := context.WithTimeoutCause(ctx, waitForNATS, fmt.Errorf("the start is waiting for %v", waitForNATS))
	defer cancel()
	if err := store.Wait(ctx); err != nil && (len(c.Server.Listeners) == 0 || !errors.Is(err, state.ErrUnavailable)) {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// open is For with a context, which bounds the wait.
func (s *State) open(ctx context.Context, c *config.Config) (state.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil {
		return s.store, nil
	}
	o := local.Options{Log: s.logger, Forms: forms()}
	switch directory := c.State.Directory; {
	case c.State.URL != "":
		store, err := s.openNATS(ctx, c)
		if err != nil {
			return nil, err
		}
		s.store, s.url = store, c.State.URL
	case directory != "" && c.State.Implied:
		s.store, s.directory = local.Defer(directory, o), directory
	case directory != "":
		store, err := local.Open(directory, o)
		if err != nil && len(c.Server.Listeners) == 0 {
			return nil, err
		}
		s.directory = directory
		if err != nil {
			s.store = local.Lost(err, o)
			break
		}
		s.store = store
		s.logger.Info("state is open", "directory", directory)
	case s.volatile:
		s.store = memory.New()
	}
	return s.store, nil
}

// Store returns the store, or nil if there is none yet.
func (s *State) Store() state.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// Directory returns the directory of the store, or "" if it has none.
func (s *State) Directory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.directory
}

// Check returns an error if a configuration names another state, and the next process could not open it.
func (s *State) Check(c *config.Config) error {
	s.mu.Lock()
	open, directory, url := s.store != nil, s.directory, s.url
	s.mu.Unlock()
	if c.State.URL != "" {
		if c.State.URL == url {
			return nil
		}
		return CheckNATS(c)
	}
	// A reload opens a store that is not open yet. A directory that no configuration names may be missing.
	if !open || c.State.Directory == "" || c.State.Implied || c.State.Directory == directory {
		return nil
	}
	if here, err := os.Stat(directory); err == nil {
		if there, err := os.Stat(c.State.Directory); err == nil && os.SameFile(here, there) {
			return nil // and in use
		}
	}
	store, err := local.Open(c.State.Directory, local.Options{Forms: forms()})
	if err != nil {
		return err
	}
	return store.Close()
}

// Broken returns why the state can't be used before a restart, or nil.
func (s *State) Broken() error {
	s.mu.Lock()
	store, ok := s.store.(interface{ Broken() error })
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return store.Broken()
}

// CutOff returns since when the servers that hold the state have been unreachable, and why, or nil. Until they are back, the state is read as it was
// last known, and can't be changed.
func (s *State) CutOff() *nats.Cut {
	s.mu.Lock()
	store, ok := s.store.(*nats.Store)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return store.CutOff()
}

// Peers returns the other processes that share the state, or nil if it is not shared.
func (s *State) Peers() state.Peers {
	peers, _ := s.Store().(state.Peers)
	return peers
}

// keys returns the keys with which the processes that share a state sign. In an implied directory they are the process's own keys, so that no
// state is created just to keep them.
func (s *State) keys(ctx context.Context, c *config.Config, store state.Store) *signing.Keys {
	if c.State.URL == "" && (c.State.Directory == "" || c.State.Implied) {
		store = nil
	}
	return signing.Open(ctx, store, s.logger)
}

// paths returns the space in which processes agree on which of two files gets a path, or nil if the state is not shared.
func (s *State) paths() state.Space {
	if !s.InNATS() {
		return nil
	}
	return s.Store().Space(catalog.PathsSpace)
}

// InNATS reports whether the state is in NATS.
func (s *State) InNATS() bool {
	_, ok := s.Store().(*nats.Store)
	return ok
}

// CheckNATS returns an error if the files that a configuration names for NATS can't be used. It does not connect.
func CheckNATS(c *config.Config) error {
	if c.State.URL == "" {
		return nil
	}
	return nats.Check(inNATS(c, nil))
}

// Figures returns what has been written so far, or false if nothing is kept on disk or in NATS. Bytes is 0 in NATS.
func (s *State) Figures() (local.Figures, bool) {
	s.mu.Lock()
	of := s.store
	s.mu.Unlock()
	switch store := of.(type) {
	case *nats.Store:
		f := store.Figures()
		return local.Figures{Written: f.Written, Failed: f.Failed}, true
	case interface{ Figures() local.Figures }:
		return store.Figures(), true
	}
	return local.Figures{}, false
}

// Close closes the state. A second Close returns the result of the first.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}
