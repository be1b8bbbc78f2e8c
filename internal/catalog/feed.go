package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// A feed is a source and what is known of it. The reconciler's goroutine owns it.
type feed struct {
	Sourced
	id     string
	prefix string // what the keys of its files begin with
	told   string // the source's name, if it is shown after the places of its files

	binding  binding
	patience *patience
	buffers  *buffers // shared by all sources

	scripts   scripts
	rollbacks Rollbacks // nil: there are none

	listing  bool               // a listing is under way
	listed   bool               // a listing has succeeded
	tried    bool               // a listing has succeeded or failed, or takes so long that the start does not wait for it
	listedAt time.Time          // when the last successful listing began
	listTook time.Duration      // how long the last successful listing took
	listAt   time.Time          // when the next listing is due; zero means when a change is reported
	problems []problem          // the problems at the last listing
	failed   int                // how many listings have failed since the last successful one
	stalled  int                // how many of its files are slow to read
	number   uint64             // the number of the last listing, if all of it was applied; otherwise 0
	files    int                // how many of its files are in the index
	open     map[string]bool    // names of files that the next listing must look at, even if they have not changed
	folders  map[string]*folder // the folders of files that are being loaded, by name
	alone    bool               // there is no other source

	noted      precedence.Precedence // the precedence that its record on disk has
	unrecorded *trouble.Trouble      // set while the last precedence could not be written

	served durations.Histogram // times from the listing of a changed file until its tools were served
}

// newFeeds returns the sources, none of which is listed yet.
func newFeeds(sources []Sourced, rollbacks Rollbacks) []*feed {
	feeds := make([]*feed, len(sources))
	for i, s := range sources {
		asked := &patience{}
		feeds[i] = &feed{Sourced: s, patience: asked, id: s.Source.ID(), prefix: fmt.Sprintf("%06d/", i), listAt: time.Now(), open: map[string]bool{}, scripts: scripts{source: s.Source, builder: s.Scripts, rollbacks: rollbacks, patience: asked}, rollbacks: rollbacks}
		feeds[i].alone = len(sources) == 1
		if !feeds[i].alone {
			feeds[i].told = s.Name
		}
	}
	bind(feeds)
	return feeds
}

// doubt makes the next listing look at everything.
func (f *feed) doubt() {
	if s, ok := f.Source.(Trusting); ok {
		s.Doubt()
	}
}

// isSlow reports whether files of the source are slow to read. Such a source must not delay the files of other sources.
func (f *feed) isSlow() bool { return f != nil && f.stalled > 0 && !f.alone }

// most returns how many modules and scripts of the source are served.
func (f *feed) most() int { return cmp.Or(f.Most, mostFiles) }

// mostFiles is how many modules and scripts of a source are served by default.
const mostFiles = 10_000

// call returns the name of the source for messages.
func (f *feed) call() string { return cmp.Or(f.Name, f.Source.Place(".")) }

// folder returns the top-level folder of the source in which a file lies. For a file in no folder, that is the one named "".
func (f *feed) folder(name string) *folder {
	top, _, below := strings.Cut(name, "/")
	if !below {
		top = ""
	}
	of := f.folders[top]
	if of == nil {
		of = &folder{}
		if f.folders == nil {
			f.folders = map[string]*folder{}
		}
		f.folders[top] = of
	}
	return of
}

// place returns where a file or folder lies, for messages.
func (f *feed) place(name string) string {
	place := f.Source.Place(name)
	if f.told != "" {
		place += " (" + f.told + ")"
	}
	return place
}

// namespace returns the namespace of a file in a folder, unless its manifest has one.
func (f *feed) namespace(folder string) string { return strings.Trim(f.Prefix+"/"+folder, "/") }

// key returns the index's key of a file. Keys sort by source, then by name.
func (f *feed) key(name string) string { return f.prefix + name }

// nameIn returns the name in a key.
func nameIn(key string) string { return key[strings.IndexByte(key, '/')+1:] }

// elsewhere separates the source from the name of a file, in the record of another source and in the record that servers share. No file's name
// contains it.
const elsewhere = "//"

// readRecords returns the precedences in the records of the sources, by keys.
func readRecords(feeds []*feed) (noted precedence.Precedence, err error) {
	noted = precedence.Precedence{}
	for _, f := range feeds {
		p, failed := precedence.Read(f.Record, f.id)
		if failed != nil {
			err = failed
			continue
		}
		f.noted = p
		for name, holders := range p {
			for _, holder := range holders {
				key := f.key(holder)
				for _, other := range feeds {
					if rest, ok := strings.CutPrefix(holder, other.id+elsewhere); ok && other.id != "" {
						key = other.key(rest)
					}
				}
				noted[f.key(name)] = append(noted[f.key(name)], key)
			}
		}
	}
	return precedence.Precedence{}.With(noted.Sorted()), err
}

// record returns, by keys, which files of a source wait for which, for the source's record.
func (f *feed) record(all precedence.Precedence, feeds []*feed) precedence.Precedence {
	p := precedence.Precedence{}
	for key, holders := range all {
		name, ok := strings.CutPrefix(key, f.prefix)
		if !ok {
			continue
		}
		for _, holder := range holders {
			own, ok := strings.CutPrefix(holder, f.prefix)
			if i := slices.IndexFunc(feeds, func(o *feed) bool { return strings.HasPrefix(holder, o.prefix) }); !ok {
				if own = feeds[i].id + elsewhere + nameIn(holder); feeds[i].id == "" { // the ID may differ at the next start
					continue
				}
			}
			p[name] = append(p[name], own)
		}
	}
	return p
}
