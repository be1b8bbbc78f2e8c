// Package watch tells the watchers of a space which keys have changed. It is for stores whose changes are all made in one process.
package watch

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A Hub knows who watches. The zero Hub is ready for use, and safe for concurrent use.
type Hub struct {
	mu       sync.Mutex
	closed   bool
	watchers map[string]map[*watcher]struct{} // watchers by the name of their space
}

// A watcher keeps only the keys that have changed, not their values. So it takes no more memory than there are keys, however slow its reader is.
type watcher struct {
	prefix  string
	changed chan struct{} // has room for one value, sent when a key is pending or the hub is closed

	mu      sync.Mutex
	pending []string
	queued  map[string]struct{}
}

// Changed announces that a key has changed. The change must already be readable.
func (h *Hub) Changed(space, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[space] {
		if strings.HasPrefix(key, w.prefix) {
			w.add(key)
		}
	}
}

// Close ends all watches with ErrUnavailable, and later ones as soon as they begin.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, watchers := range h.watchers {
		for w := range watchers {
			w.wake()
		}
	}
}

// Watch implements state.Space for the space of that name.
func (h *Hub) Watch(ctx context.Context, space state.Space, name, prefix string) iter.Seq2[state.Event, error] {
	return func(yield func(state.Event, error) bool) {
		w := &watcher{prefix: prefix, changed: make(chan struct{}, 1), queued: map[string]struct{}{}}
		h.add(name, w)
		defer h.remove(name, w)
		// Changes are collected from here on, so none is missed between listing and waiting.
		for after, more := "", true; more; {
			keys, left, err := space.List(ctx, prefix, after, state.MaxPage)
			if err != nil {
				yield(state.Event{}, err)
				return
			}
			for _, key := range keys {
				if event, err := read(ctx, space, key); err != nil || !event.Deleted {
					if !yield(event, err) || err != nil {
						return
					}
				}
				after = key
			}
			more = left
		}
		if !yield(state.Event{Synced: true}, nil) {
			return
		}
		for {
			key, ok := w.next()
			if !ok {
				select {
				case <-ctx.Done():
					yield(state.Event{}, context.Cause(ctx))
					return
				case <-w.changed:
				}
				if h.isClosed() {
					yield(state.Event{}, fmt.Errorf("watch %s: %w: it is closed", name, state.ErrUnavailable))
					return
				}
				continue
			}
			if event, err := read(ctx, space, key); !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// read returns an event for the current entry of a key.
func read(ctx context.Context, space state.Space, key string) (state.Event, error) {
	entry, ok, err := space.Get(ctx, key, state.MaxValue)
	if err != nil {
		return state.Event{}, err
	}
	if !ok {
		entry = state.Entry{Key: key}
	}
	return state.Event{Entry: entry, Deleted: !ok}, nil
}

func (h *Hub) add(space string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = map[string]map[*watcher]struct{}{}
	}
	if h.watchers[space] == nil {
		h.watchers[space] = map[*watcher]struct{}{}
	}
	h.watchers[space][w] = struct{}{}
	if h.closed {
		w.wake()
	}
}

func (h *Hub) remove(space string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.watchers[space], w); len(h.watchers[space]) == 0 {
		delete(h.watchers, space)
	}
}

func (h *Hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (w *watcher) add(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.queued[key]; !ok {
		w.queued[key] = struct{}{}
		w.pending = append(w.pending, key)
	}
	w.wake()
}

func (w *watcher) next() (key string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 {
		return "", false
	}
	key, w.pending = w.pending[0], w.pending[1:]
	delete(w.queued, key)
	return key, true
}

func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
