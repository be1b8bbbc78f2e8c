package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A watch learns from the system that something has changed in folders. A scan finds out what.
type watch struct {
	logger    *slog.Logger
	intervals intervals
	pollOnly  bool
	changes   chan struct{} // holds one value after any number of changes
	told      string        // the last logged reason why not all folders are watched

	notifier   *fsnotify.Watcher
	forwarding sync.WaitGroup
	folders    map[string]fs.FileInfo // the watched folders, as they were when they were added
	live       int                    // how many watches were set at that time
	err        error                  // why some folder is not watched, or nil
	tried      time.Time
	fresh      bool // a change before the watch began may have gone unseen

	mu      sync.Mutex // guards the fields below
	changed changes    // since take
	named   int        // how many names changed has
	unknown bool       // something else has changed, or may have
}

func newWatch(o Options, logger *slog.Logger) watch {
	return watch{logger: logger, intervals: newIntervals(o.Poll), pollOnly: o.PollOnly, changes: make(chan struct{}, 1), changed: changes{}}
}

// follow watches folders of the directory, and returns the time after which to list again even if no change is reported. linked means that a link
// leads to something that may change unnoticed.
func (w *watch) follow(directory string, folders map[string]fs.FileInfo, linked bool, now time.Time) time.Duration {
	if w.pollOnly {
		return w.intervals.poll
	}
	again := w.intervals.safety
	if w.fresh = w.add(directory, folders, now); w.fresh {
		again = w.intervals.debounce // to find what changed between the scan and the watch
		if w.err != nil && w.err.Error() != w.told {
			w.told = w.err.Error()
			w.logger.Warn("not all folders can be watched: scanning them regularly instead", "every", w.intervals.poll.String(), "error", w.err)
		}
		if w.err == nil && w.told != "" {
			w.told = ""
			w.logger.Info("all folders are watched again")
		}
	}
	if w.err != nil || linked {
		again = min(again, w.intervals.poll)
	}
	return again
}

// add watches these folders of the directory and no others. It reports whether it started a new watch: then a change between the scan and now may
// have gone unseen, so another scan is due. If not all folders can be watched, it tries again, at most once every safety interval.
func (w *watch) add(directory string, folders map[string]fs.FileInfo, now time.Time) bool {
	if maps.EqualFunc(w.folders, folders, os.SameFile) && w.alive() && (w.err == nil || now.Sub(w.tried) < w.intervals.safety) {
		return false
	}
	// A new watch is simpler than moving watches along with renamed folders, which the system knows by inode and the notifier by path. Folders change
	// rarely.
	w.close()
	w.folders, w.tried = maps.Clone(folders), now
	w.notifier, w.err = fsnotify.NewWatcher()
	if w.err != nil {
		w.notifier = nil
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		err := w.notifier.Add(filepath.Join(directory, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			delete(w.folders, name) // gone again; if it comes back, it is new
		} else if err != nil {
			w.err = fmt.Errorf("watch folder %s: %w", name, err)
			break // the others would mostly fail for the same reason, such as too many watches
		}
	}
	w.live = len(w.notifier.WatchList())
	notifier, names := w.notifier, make(map[string]string, len(w.folders))
	for name := range w.folders {
		names[filepath.Join(directory, filepath.FromSlash(name))] = name
	}
	w.forwarding.Go(func() { w.forward(notifier, names) })
	return true
}

// isComplete reports whether the system has reported all changes since the last full scan, except those that are still on their way.
func (w *watch) isComplete() bool {
	return w.notifier != nil && w.err == nil && !w.fresh && w.alive()
}

// take returns which files have changed since it was called last. It returns false if more may have changed. A change that is reported later belongs
// to the next call.
func (w *watch) take() (changed changes, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed, ok = w.changed, !w.unknown
	w.changed, w.named, w.unknown = changes{}, 0, false
	return changed, ok
}

// doubt makes the next take return false.
func (w *watch) doubt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknown = true
}

// note records an event for a path. names are the watched folders, by their paths on disk.
func (w *watch) note(path string, names map[string]string) {
	_, isFolder := names[path] // it has come, gone or moved
	folder, ok := names[filepath.Dir(path)]
	if isFolder || !ok {
		w.doubt()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.changed[folder])
	w.changed.add(folder, filepath.Base(path))
	if w.named += max(0, len(w.changed[folder])-before); w.named > mostNamed {
		w.changed[folder] = nil
	}
}

// alive reports whether all watches still exist. The system drops the watch of a removed folder. A new folder in the same place may get the inode of
// the old one and so look the same.
func (w *watch) alive() bool {
	return w.notifier == nil || len(w.notifier.WatchList()) == w.live
}

// forward forwards the events of a notifier until that is closed.
func (w *watch) forward(n *fsnotify.Watcher, names map[string]string) {
	for {
		select {
		case event, ok := <-n.Events:
			if !ok {
				return
			}
			w.note(event.Name, names)
		case err, ok := <-n.Errors:
			if !ok {
				return
			}
			w.doubt() // the system drops events if there are too many
			w.logger.Debug("file notification failed, scanning instead", "error", err)
		}
		select {
		case w.changes <- struct{}{}:
		default:
		}
	}
}

// close ends the watch. It can be used again.
func (w *watch) close() {
	if w.notifier != nil {
		w.notifier.Close()
		w.forwarding.Wait()
	}
	w.notifier, w.folders, w.live, w.err = nil, nil, 0, nil
}
