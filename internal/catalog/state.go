package catalog

import (
	"time"

	"github.com/toolsrv/toolsrv/internal/durations"
)

// A State is what a Catalog holds and does at one moment. For what is served, see [wasmtools.RouteTable.State].
type State struct {
	// Closed means that the Catalog is closed. Then all other fields are empty.
	Closed bool
	// Sources are the sources, in their order.
	Sources []SourceState
	// Published is how long the last generation of the table took to build.
	Published time.Duration
	// Awaited is how many files of the first listing the start still waits for.
	Awaited int
	// Files is how many files are in each stage. Served is how many of them have a version in the table, even if it is an older one.
	Files  map[Stage]int
	Served int
	// Loading are the files whose newest version is being loaded, the oldest load first, at most 100.
	Loading []Loading
	// Refused are the files with a version that is not served, and the folders that can't be listed, sorted by name.
	Refused []Refused
}

// A SourceState is what is known of a source.
type SourceState struct {
	// Name is the source's name, or empty. Place is where the source lies.
	Name, Place string
	// Listed is when the source was last listed without an error, or zero. ListTook is how long the last listing took.
	Listed   time.Time
	ListTook time.Duration
	// Files is how many of its files are in each stage. Serving is how many of them have a version that is served, even if it is an older one.
	Files   map[Stage]int
	Serving int
	// Problems is how many of its folders can't be listed, or 1 if the source itself can't be. Wrong is the first reason, or nil.
	Problems int
	Wrong    error
	// Served has the times from the listing of a changed file until its tools were served, except for files of the start.
	Served durations.Sum
}

// A Stage says how far the newest version of a file has come.
type Stage string

// The stages of a file.
const (
	StageSettling   Stage = "settling"   // somebody may still be writing the file
	StageReading    Stage = "reading"    // the file is being read, or is queued for reading
	StageCompiling  Stage = "compiling"  // the file is compiled before it is served, because it has to be described or replaces another version
	StageDescribing Stage = "describing" // the file is run to be described, or is queued for that
	StageServed     Stage = "served"     // the file is served, and compiled in the background or by its first call
	StageRefused    Stage = "refused"
)

// Stages returns all stages.
func Stages() []Stage {
	return []Stage{StageSettling, StageReading, StageCompiling, StageDescribing, StageServed, StageRefused}
}

// A Loading is a file that is being loaded.
type Loading struct {
	// Source is where it lies.
	Source string
	Stage  Stage
	// Since is when the version was listed, or when its loading last started again.
	Since time.Time
}

// A Refused is a file whose newest version is not served, or a folder that can't be listed.
type Refused struct {
	// Source is where it lies.
	Source string
	// Err is the reason. Since is when it was found; another try that fails for the same reason does not change it.
	Err   error
	Since time.Time
	// Waits means that the file is good, but waits for a path that another one has.
	Waits bool
	// Served means that an older version is served.
	Served bool
}

// A FileState is what is known of a file.
type FileState struct {
	FileID
	// Script is whether the file is a script. Size is the size of the newest version in bytes.
	Script bool
	Size   int64
	// Source is where the file lies, for messages.
	Source string
	// Stage is the stage of its newest version. Since is when it reached that stage.
	Stage Stage
	Since time.Time
	// Digest, Version and Paths describe the version that is served, and are empty if none is. Content is the digest of the served version of the
	// file itself: for a script that is the script's own file, while Digest is that of the module it became.
	Digest, Version, Content string
	Paths                    []string
	// Err is why the newest version is not served, or nil.
	Err error

	from    *feed
	version string    // the version in the source
	listed  time.Time // when the listing that first had it began
	loading bool
}

// Edits returns a number that changes when Files would return other files, or other served contents.
func (c *Catalog) Edits() uint64 { return c.reconciler.index.edits.Load() }

// Files returns the state of each file, sorted by where it lies. It waits as State does.
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

// State returns the State of the Catalog. It takes some milliseconds for 10,000 files, and waits for a generation that is being built. A subscriber
// of the table must not call it.
func (c *Catalog) State() State {
	told := make(chan State, 1)
	select {
	case c.do <- func() { told <- c.reconciler.state() }:
		return <-told
	case <-c.done:
		return State{Closed: true}
	}
}

// stage returns the stage of a file's newest version.
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
