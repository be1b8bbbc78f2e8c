package catalog

import (
	"cmp"
	"io/fs"

	"github.com/toolsrv/toolsrv/wasmtools/catalog/precedence"
)

// A File is a file that a Catalog looks at, as List saw it.
type File struct {
	// Name is its path in the directory, with slashes.
	Name string
	// Folder is its folder in the directory, with slashes, or empty at the top.
	Folder string
	// Err is why it is not served, whatever is in it, or nil. A folder that can't be read, or is too deep, is a File with an Err.
	Err error
	// Turn tells when it gets its paths, by the record of the last Catalog: before files of a higher one.
	Turn int

	directory string
	info      fs.FileInfo
}

// List returns the files that a Catalog of the directory would look at, by path, and the folders that it could not. modules and
// record are as in Options.
func List(directory string, modules int, record string) ([]File, error) {
	before, _ := precedence.Read(record, directory) // a server that can't read it does without, too
	seen, err := scan(directory, cmp.Or(modules, DefaultModules))
	if err != nil {
		return nil, err
	}
	turn := before.Turns(seen.paths())
	var files []File
	for _, f := range seen.files {
		files = append(files, File{f.path, folder(f.path), f.err, turn(f.path), directory, f.info})
	}
	for _, p := range seen.problems {
		files = append(files, File{Name: p.path, Err: p.err})
	}
	return files, nil
}

// Read returns the content of a file whose Err is nil, as a Catalog would read it. It fails where the file is no
// longer what List saw.
func (f *File) Read() ([]byte, error) { return read(f.directory, f.Name, f.info) }
