package broker

import (
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/wasmtools/capability/kv"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// A vault has the store of a process, which is opened for the first grant that needs it: who grants no KV gets no directory.
type vault struct {
	mu        sync.Mutex
	store     state.Store // nil: not opened yet
	directory string      // of store; empty: it has none
}

// open returns the store, or nil. It is opened if a configuration grants KV, and has a place for it. An open one stays as it is.
func (v *vault) open(c *config.Config, o Options) (state.Store, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store != nil || !grantsKV(c) {
		return v.store, nil
	}
	switch directory := c.State.Directory; {
	case directory != "":
		store, err := local.Open(directory, local.Options{Log: o.Logger})
		if err != nil && c.Server.Listener == nil {
			return nil, err
		}
		v.directory = directory
		if err != nil {
			v.store = local.Lost(err, local.Options{Log: o.Logger})
			break
		}
		v.store = store
		o.Logger.Info("state is open", slog.String("directory", directory))
	case o.Volatile:
		v.store = memory.New()
	}
	return v.store, nil
}

func grantsKV(c *config.Config) bool {
	return slices.ContainsFunc(c.Grants, func(g config.Grant) bool {
		r, ok := g.Rules["kv"].(*kv.Rule)
		return ok && r.Bytes > 0
	})
}

// check returns an error where a process that follows this one could not open the store that a configuration names in place of this one's.
func (v *vault) check(c *config.Config) error {
	v.mu.Lock()
	open, directory := v.store != nil, v.directory
	v.mu.Unlock()
	// What is not open yet a reload opens.
	if !open || c.State.Directory == "" || c.State.Directory == directory || !grantsKV(c) {
		return nil
	}
	if here, err := os.Stat(directory); err == nil {
		if there, err := os.Stat(c.State.Directory); err == nil && os.SameFile(here, there) {
			return nil // and in use
		}
	}
	store, err := local.Open(c.State.Directory, local.Options{})
	if err != nil {
		return err
	}
	return store.Close()
}

// broken returns why the store can't be used any more, or nil.
func (v *vault) broken() error {
	v.mu.Lock()
	store, ok := v.store.(*local.Store)
	v.mu.Unlock()
	if !ok {
		return nil
	}
	return store.Broken()
}

func (v *vault) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil {
		return nil
	}
	return v.store.Close()
}
