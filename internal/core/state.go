package core

import (
	"log/slog"
	"os"
	"sync"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/brought"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// A State is where a process keeps what outlives a call: one store for all that keep something. It is safe for concurrent use.
type State struct {
	volatile bool // it is in memory where no configuration names a directory
	logger   *slog.Logger

	mu        sync.Mutex
	store     state.Store // nil: not opened yet
	directory string      // of store; empty: it has none
}

// forms are the newest forms of records that this program knows, by space.
func forms() map[string]byte {
	return map[string]byte{audit.Space: audit.Form, tokens.Space: tokens.Form, switches.Space: switches.Form, brought.Space: brought.Form, versions.Space: versions.Form}
}

// For returns the store under a configuration, or nil. The first configuration that names a directory opens it; one that is implied is opened
// when it is first used. An open store stays until the process ends, whatever a later configuration says. Where the configuration has
// a listener, somebody waits there already, and tools that keep nothing should work: then state that can't be opened is not an error, but
// counts as lost later.
func (s *State) For(c *config.Config) (state.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil {
		return s.store, nil
	}
	o := local.Options{Log: s.logger, Forms: forms()}
	switch directory := c.State.Directory; {
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

// Store returns the store, or nil where there is none yet.
func (s *State) Store() state.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// Directory returns the directory of the store, or nothing where it has none.
func (s *State) Directory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.directory
}

// Check returns an error where a process that follows this one could not open the state that a configuration names in place of this one's.
func (s *State) Check(c *config.Config) error {
	s.mu.Lock()
	open, directory := s.store != nil, s.directory
	s.mu.Unlock()
	// A reload opens what is not open yet. What no configuration names may be missing.
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

// Broken returns why the state can't be used until the program is started again, or nil.
func (s *State) Broken() error {
	s.mu.Lock()
	store, ok := s.store.(interface{ Broken() error })
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return store.Broken()
}

// Figures tells what was written so far. It reports false where nothing is kept on disk.
func (s *State) Figures() (local.Figures, bool) {
	s.mu.Lock()
	store, ok := s.store.(interface{ Figures() local.Figures })
	s.mu.Unlock()
	if !ok {
		return local.Figures{}, false
	}
	return store.Figures(), true
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
