package catalog

import (
	"context"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// A File is a file that a Catalog would serve or refuse, as List saw it.
type File struct {
	// Name is its path in the source, with slashes.
	Name string
	// Err is why the file is not served, regardless of its content, or nil. A folder that can't be listed is a File with an Err.
	Err error
	// Place is where the file lies, for messages.
	Place string
	// Turn decides the order in which files get their paths, by the records of the last Catalog. Lower turns come first.
	Turn int

	feed  *feed
	entry Entry
}

// List returns the files of sources, sorted by source and name. The files of each source are followed by its folders that can't be listed. A source
// that can't be listed is such a folder.
func List(ctx context.Context, sources []Sourced) ([]File, error) {
	if err := checkSources(sources); err != nil {
		return nil, err
	}
	feeds := newFeeds(sources, nil)
	noted, _ := readRecords(feeds) // like a Catalog, List ignores a record that can't be read
	var files []File
	var keys []string
	for _, f := range feeds {
		listing, err := f.list(ctx, 0)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			listing = &Listing{Problems: []Problem{{".", err}}}
		}
		for _, e := range listing.Entries {
			files = append(files, File{Name: e.ID, Place: f.place(e.ID), Err: e.Err, feed: f, entry: e})
			keys = append(keys, f.key(e.ID))
		}
		for _, p := range listing.Problems {
			files = append(files, File{Name: p.Name, Place: f.place(p.Name), Err: p.Err})
			keys = append(keys, f.key(p.Name))
		}
	}
	turn := noted.Turns(keys)
	for i := range files {
		files[i].Turn = turn(keys[i])
	}
	return files, nil
}

// Check returns why the file's source may not serve a module that Load has loaded, or nil. The module must have been described.
func (f *File) Check(m *toolfile.Module) error { return f.feed.binding.check(m) }

// Load loads a file whose Err is nil, as a Catalog would. It fails if the file is no longer what List saw.
func (f *File) Load(ctx context.Context, engine *sandbox.Engine) (*toolfile.Module, error) {
	m, _, err := f.feed.load(ctx, f.entry, engine, toolfile.Place{})
	return m, err
}
