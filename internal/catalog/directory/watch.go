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

// A watch has the system tell of changes in folders. What has changed is found by a look at them.
type watch struct {
	logger    *slog.Logger
	intervals intervals
	pollOnly  bool
	changes   chan struct{} // holds a value after a change, one for all
	told      string        // why not all folders are watched, as it was logged last

	notifier   *fsnotify.Watcher
	forwarding sync.WaitGroup
	folders    map[string]fs.FileInfo // as they were when they were added
	live       int                    // how many watches there were then
	err        error                  // why some folder is not watched, or nil
	tried      time.Time
	fresh      bool // a change before the watch began may have gone unseen

	mu      sync.Mutex // guards what follows
	changed changes    // since take
	named   int        // how many names were added to it
	unknown bool       // something else has, or may have
}

func newWatch(o Options, logger *slog.Logger) watch {
	return watch{logger: logger, intervals: newIntervals(o.Poll), pollOnly: o.PollOnly, changes: make(chan struct{}, 1), changed: changes{}}
}

// follow watches folders of the directory, and returns the time after which to list again even if no change is reported. linked
// means that something may change where nothing is watched.
func (w *watch) follow(directory string, folders map[string]fs.FileInfo, linked bool, now time.Time) time.Duration {
	if w.pollOnly {
		return w.intervals.poll
	}
	again := w.intervals.safety
	if w.fresh = w.add(directory, folders, now); w.fresh {
		again = w.intervals.debounce // for what came between the scan and the watch
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

// add watches these folders of the directory and no others. It reports whether it began anew: a change between the scan and
// now may then have gone unseen, so another scan is due. If not all can be watched, it tries again, once in each safety interval at most.
func (w *watch) add(directory string, folders map[string]fs.FileInfo, now time.Time) bool {
	if maps.EqualFunc(w.folders, folders, os.SameFile) && w.alive() && (w.err == nil || now.Sub(w.tried) < w.intervals.safety) {
		return false
	}
	// To begin anew is simpler than to move watches along with renamed folders, which the system knows by inode and the
	// notifier by path. Folders change rarely.
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
			break // a reason such as too many watches mostly holds for the rest, too
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

// isComplete reports whether all changes since the last look at everything have been told, but those that are still on their way.
func (w *watch) isComplete() bool {
	return w.notifier != nil && w.err == nil && !w.fresh && w.alive()
}

// take returns which files have changed since it was called last. It reports false where more may have changed. A change that is told from now
// on belongs to the next call.
func (w *watch) take() (changed changes, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed, ok = w.changed, !w.unknown
	w.changed, w.named, w.unknown = changes{}, 0, false
	return changed, ok
}

// doubt has take report false.
func (w *watch) doubt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknown = true
}

// note notes the event of a path. names are the watched folders, by their paths on disk.
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

// alive reports whether all watches are still there. The system drops a watch with its folder. A new folder in the same place
// may get the inode of the old one, and so look the same.
func (w *watch) alive() bool {
	return w.notifier == nil || len(w.notifier.WatchList()) == w.live
}

// forward forwards what a notifier tells, until that is closed.
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
			w.doubt() // events are lost where there are too many of them
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
