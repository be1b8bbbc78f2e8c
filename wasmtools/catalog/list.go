package catalog

import (
	"context"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// A File is one that a Catalog would serve or refuse, as List saw it.
type File struct {
	// Name is its path in the source, with slashes.
	Name string
	// Err is why it is not served, whatever is in it, or nil. A folder that can't be listed is a File with an Err.
	Err error
	// Turn is the order in which files get their paths, by the record of the last Catalog. Lower ones come first.
	Turn int

	source Source
	entry  Entry
}

// List returns the files of a source by name, and after them the folders that can't be listed. record is as in Options.
func List(ctx context.Context, s Source, record string) ([]File, error) {
	before, _ := precedence.Read(record, s.ID()) // a Catalog does without a record that it can't read, too
	listing, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	turn := before.Turns(listing.names())
	var files []File
	for _, e := range listing.Entries {
		files = append(files, File{e.Name, e.Err, turn(e.Name), s, e})
	}
	for _, p := range listing.Problems {
		files = append(files, File{Name: p.Name, Err: p.Err})
	}
	return files, nil
}

// Load loads a file whose Err is nil, as a Catalog would. It fails if the file is no longer what List saw.
func (f *File) Load(ctx context.Context, engine *sandbox.Engine) (*toolfile.Module, error) {
	return loadModule(ctx, f.source, f.entry, engine, toolfile.Place{})
}
