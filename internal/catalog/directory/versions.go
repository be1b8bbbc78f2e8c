package directory

import (
	"io/fs"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
)

// versions gives each content of a file its own version.
type versions struct {
	intervals intervals
	scripts   Names // nil: there are none

	mu    sync.Mutex // guards the fields below, which Open uses
	files map[string]*file
	last  []catalog.Entry // the entries of the last listing; the slice is never changed
	given int
	parts map[string]fs.FileInfo // all files that scripts may be made of, by path, as the last scan saw them
	round uint64                 // how often the parts have changed
}

// A file is what is known of a module.
type file struct {
	info    fs.FileInfo // the file's info in the last scan; nil if the file can't be a module
	since   time.Time   // when a scan first saw this info
	settled bool        // the info has stayed the same for long enough
	version string
	seen    bool // the last scan saw the file
}

func newVersions(o Options) versions {
	return versions{intervals: newIntervals(o.Poll), scripts: o.Scripts, files: map[string]*file{}}
}

// compare compares the files that a scan saw with what is known, and fills in the entries of the listing, which must have its problems already. If
// scan.only is nil, any file may have changed, and otherwise only the files in it. compare returns the files that have settled since the last time.
func (v *versions) compare(seen []found, only map[string]bool, listing *catalog.Listing, first bool, now time.Time) (settled []found) {
	v.mu.Lock()
	defer v.mu.Unlock()
	entries := make([]catalog.Entry, len(seen))
	last := v.last
	for i, s := range seen {
		if only != nil && !only[s.path] {
			for len(last) > 0 && last[0].ID < s.path {
				last = last[1:]
			}
			if len(last) > 0 && last[0].ID == s.path {
				entries[i] = last[0]
				continue
			}
		}
		f := v.files[s.path]
		if f == nil {
			f = &file{}
			v.files[s.path] = f
		}
		if !same(f.info, s.info) {
			v.given++
			*f = file{info: s.info, since: now, version: strconv.Itoa(v.given)}
		}
		f.seen = true
		e := catalog.Entry{ID: s.path, Folder: folderOf(s.path), Version: f.version, Err: s.err}
		if s.script {
			e.Kind = catalog.Script
		}
		if s.err == nil {
			e.Size = s.info.Size()
		}
		if s.err == nil && !f.settled {
			if !first { // what was there before the start is settled
				e.Settling = max(0, v.intervals.unsettled(s.info, f.since, now))
			}
			if f.settled = e.Settling == 0; f.settled {
				settled = append(settled, s)
			}
		}
		entries[i] = e
	}
	forget := func(name string, f *file) {
		if !f.seen && listing.Knows(name) {
			delete(v.files, name)
		}
		f.seen = false
	}
	if only == nil {
		for name, f := range v.files {
			forget(name, f)
		}
	}
	for name := range only {
		if f := v.files[name]; f != nil {
			forget(name, f)
		}
	}
	v.last = entries
	listing.Entries, listing.Around = entries, strconv.FormatUint(v.round, 10)
	return settled
}

// folderOf returns the folder of a file, or "" at the top.
func folderOf(file string) string {
	if f := path.Dir(file); f != "." {
		return f
	}
	return ""
}

// infoOf returns what the last scan saw of a file, or nil if it has another version.
func (v *versions) infoOf(name, version string) fs.FileInfo {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.files[name]; f != nil && f.version == version {
		return f.info
	}
	return nil
}
