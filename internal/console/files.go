package console

import (
	"embed"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/web"
)

// Our own pages and scripts are embedded as they are, and libraries in the compressed form that make pages writes.
//
//go:embed pages lib/*.gz
var embedded embed.FS

// kinds are the content types of files by their extensions.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// files are all files that are served.
type files struct {
	pages  map[string]*web.Document // the pages by the names of their files
	loaded map[string]*web.Document // the files that pages load, by their paths below /console

	mu     sync.Mutex
	deeper map[string]*web.Document // pages for deeper paths; there are few, since the depth of a namespace is limited
}

// newFiles returns a function that reads all files when it is first called, since most servers are asked for none.
func newFiles() func() *files { return sync.OnceValue(readFiles) }

// readFiles reads the embedded files. It panics if they are not as they must be, which a test would find.
func readFiles() *files {
	f := &files{pages: map[string]*web.Document{}, loaded: map[string]*web.Document{}, deeper: map[string]*web.Document{}}
	err := fs.WalkDir(embedded, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(at)
		if err != nil {
			return err
		}
		name, isPacked := strings.CutSuffix(strings.TrimPrefix(at, "pages/"), ".gz")
		kind := kinds[path.Ext(name)]
		switch {
		case isPacked:
			f.loaded[name], err = web.NewPackedFile(kind, body)
		case path.Ext(name) == ".html":
			f.pages[name] = web.NewFile(kind, body)
		default:
			f.loaded[name] = web.NewFile(kind, body)
		}
		return err
	})
	if err != nil {
		panic("console: read the pages: " + err.Error())
	}
	return f
}

// deep returns a page for a path with that many more parts. Its relative links go up as many levels.
func (f *files) deep(name string, parts int) *web.Document {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := name + strconv.Itoa(parts)
	if found := f.deeper[key]; found != nil {
		return found
	}
	body, err := embedded.ReadFile("pages/" + name)
	if err != nil {
		return nil
	}
	text := strings.ReplaceAll(string(body), `="console/`, `="`+strings.Repeat("../", parts)+`console/`)
	d := web.NewFile(kinds[".html"], []byte(text))
	f.deeper[key] = d
	return d
}
