package catalog

import (
	"time"

	"github.com/toolsrv/toolsrv/internal/durations"
)

// A State is what a Catalog holds and does at one moment. What is served of it is in the table: [wasmtools.RouteTable.State].
type State struct {
	// Closed tells that the Catalog is closed, and nothing else is told.
	Closed bool
	// Sources are the sources, in their order.
	Sources []SourceState
	// Published is what the last generation of the table took to build.
	Published time.Duration
	// Awaited is how many files of the first listing the start still waits for.
	Awaited int
	// Files is how many files are known, in each stage. Served is how many of them have a version in the table, if only an
	// older one.
	Files  map[Stage]int
	Served int
	// Loading are the files whose newest version is on its way, the first to begin first: 100 at most.
	Loading []Loading
	// Refused are the files with a version that is not served, and the folders that can't be listed, by name.
	Refused []Refused
}

// A SourceState is what is known of a source.
type SourceState struct {
	// Name is what it is called, or empty, and Place is where it lies.
	Name, Place string
	// Listed is when it was listed last without an error, or zero, and ListTook what the last listing took.
	Listed   time.Time
	ListTook time.Duration
	// Files is how many of its files are known, in each stage, and Serving how many of them have a version that is served, if only an older one.
	Files   map[Stage]int
	Serving int
	// Problems is how many of its folders can't be listed, or 1 if it can't be, and Wrong the first reason, or nil.
	Problems int
	Wrong    error
	// Served is how long it has taken from when a changed file was listed until its tools were served, without the files of the start.
	Served durations.Sum
}

// A Stage says how far the newest version of a file has come.
type Stage string

// The stages of a file.
const (
	StageSettling   Stage = "settling"   // somebody may still be writing it
	StageReading    Stage = "reading"    // or queued for it
	StageCompiling  Stage = "compiling"  // before it is served, because it has to be described or replaces another
	StageDescribing Stage = "describing" // it is run to be described, or queued for it
	StageServed     Stage = "served"     // it is compiled in the background, or by its first call
	StageRefused    Stage = "refused"
)

// Stages returns all stages.
func Stages() []Stage {
	return []Stage{StageSettling, StageReading, StageCompiling, StageDescribing, StageServed, StageRefused}
}

// A Loading file is one on its way.
type Loading struct {
	// Source is where it lies.
	Source string
	Stage  Stage
	// Since is when it was listed, or when its loading began again.
	Since time.Time
}

// A Refused is a file or folder that is not served as it is.
type Refused struct {
	// Source is where it lies.
	Source string
	// Err is the reason, and Since when it was found; a try that fails for the same reason does not change it.
	Err   error
	Since time.Time
	// Waits tells that the file is good, and waits for a path that another one has.
	Waits bool
	// Served tells that an older version is served.
	Served bool
}

// A FileState is what is known of a file.
type FileState struct {
	FileID
	// Script is whether it is a script, and Size the size of the newest version in bytes.
	Script bool
	Size   int64
	// Source is where it lies, for people.
	Source string
	// Stage says how far its newest version has come, and Since is when it came there.
	Stage Stage
	Since time.Time
	// Digest, Version and Paths are those of what is served of it, and empty where nothing is. Content is the digest of the file that is served:
	// of a script its own file, while Digest is of all that it was made into.
	Digest, Version, Content string
	Paths                    []string
	// Err is why the newest version is not served, or nil.
	Err error

	from    *feed
	version string    // in the source
	listed  time.Time // the beginning of the listing that first had it
	loading bool
}

// Edits tells whether Files would tell of other files, or of other contents that are served: it is another number then.
func (c *Catalog) Edits() uint64 { return c.reconciler.index.edits.Load() }

// Files tells of each file, by where it lies. It waits as State does.
func (c *Catalog) Files() []FileState {
	told := make(chan []FileState, 1)
	select {
	case c.do <- func() { told <- c.reconciler.files() }:
		return <-told
	case <-c.done:
		return nil
	}
}

func (f *file) state() FileState {
	s := FileState{FileID: FileID{f.from.id, f.name}, Script: f.listed.Kind == Script, Size: f.listed.Size, Source: f.place(), Stage: f.stage(), Since: f.since, Err: f.refused,
		from: f.from, version: f.listed.sourceVersion(), listed: f.from.listedAt, loading: f.loading != nil}
	switch s.Stage {
	case StageServed:
	case StageRefused:
		s.Since = f.refusedSince
	case StageSettling:
		s.Since = f.appeared
	default:
		s.Since = f.loading.since
	}
	if f.serving != nil {
		s.Digest, s.Content, s.Paths = f.serving.Digest(), f.serving.content, f.serving.Paths()
		if tools := f.serving.Tools(); len(tools) > 0 {
			s.Version = tools[0].Version
		}
	}
	return s
}

// maxLoading is the length of State.Loading.
const maxLoading = 100

// State tells what the Catalog holds. It takes some milliseconds for 10,000 files, and waits for a generation that is being built. It must not
// be called by a subscriber of the table.
func (c *Catalog) State() State {
	told := make(chan State, 1)
	select {
	case c.do <- func() { told <- c.reconciler.state() }:
		return <-told
	case <-c.done:
		return State{Closed: true}
	}
}

// stage tells how far the newest version of a file has come.
func (f *file) stage() Stage {
	switch {
	case f.loading != nil:
		return f.loading.stage
	case f.refused != nil:
		return StageRefused
	case f.read != f.listed.Version:
		return StageSettling
	}
	return StageServed
}
