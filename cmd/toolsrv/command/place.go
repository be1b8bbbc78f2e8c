package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/text"
)

// toolsFolder is the folder for tools in a folder that `toolsrv init` has set up.
const toolsFolder = "tools"

// A place is what `toolsrv up` serves: the tools of a configuration, of a folder, or of single files.
type place struct {
	dir    string // the given folder, or "" for files
	config string // the configuration in it, or ""
	folder string // the folder of the tools, if there is no configuration
	files  []string
}

// findPlace returns what the arguments of `toolsrv up` mean. A folder with a toolsrv.toml is served as that file says. If any other folder contains
// a folder named tools, only that one is served, as other commands do. Only folders are opened, so that nothing can block.
func findPlace(args []string) (place, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	folders := 0
	for _, name := range args {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return place{}, fmt.Errorf("there is no file or folder %s: toolsrv init %s makes one with a first tool", name, text.ShellQuote(name))
		case err != nil:
			return place{}, fmt.Errorf("look at what to serve: %w", err)
		case info.IsDir():
			folders++
		case !info.Mode().IsRegular():
			return place{}, fmt.Errorf("%s is not a regular file: name a folder, scripts or .wasm files", name)
		case filepath.Ext(name) == ".toml":
			return place{}, &usageError{fmt.Errorf("%s is a configuration: name its folder, or use toolsrv openapi --config %s", name, text.ShellQuote(name))}
		case !isToolFile(name):
			return place{}, &usageError{fmt.Errorf("%s is neither a script (.py, .js, .mjs, .ts, .mts) nor a .wasm file: "+
				"for a tool in Go or Rust, run toolsrv dev with its folder", name)}
		}
	}
	switch {
	case folders == 0:
		return place{files: args}, nil
	case len(args) > 1:
		return place{}, &usageError{errors.New("name one folder, or files: put several folders into one and name that")}
	}
	return findFolder(args[0])
}

// findFolder is findPlace for a folder.
func findFolder(dir string) (place, error) {
	p := place{dir: dir}
	config := filepath.Join(dir, defaultConfig)
	switch info, err := os.Stat(config); {
	case err == nil && info.Mode().IsRegular():
		p.config = config
		return p, nil
	case err == nil:
		return place{}, fmt.Errorf("%s is not a regular file: it should be a configuration", config)
	case !errors.Is(err, fs.ErrNotExist):
		return place{}, fmt.Errorf("look for a configuration: %w", err)
	}
	p.folder = filepath.Join(dir, toolsFolder)
	switch info, err := os.Stat(p.folder); {
	case err == nil && info.IsDir():
	case err == nil || errors.Is(err, fs.ErrNotExist):
		p.folder = dir
	default:
		return place{}, fmt.Errorf("look for a folder with tools: %w", err)
	}
	return p, nil
}

// isToolFile reports whether a file, by its name, contains tools.
func isToolFile(name string) bool {
	return filepath.Ext(name) == ".wasm" || script.LanguageOf(name) != ""
}

// maxEntries is how many entries of a folder are looked at to describe it.
const maxEntries = 1000

// toolFiles returns the sorted names of the files in a folder that may contain tools, and how many other entries it has. It returns none if the
// folder can't be read.
func toolFiles(dir string) (tools []string, others int) {
	opened, err := os.Open(dir)
	if err != nil {
		return nil, 0
	}
	defer opened.Close()
	entries, err := opened.ReadDir(maxEntries)
	if err != nil {
		return nil, 0
	}
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && isToolFile(name) && !script.IsPart(name) && name[0] != '.' {
			tools = append(tools, name)
		} else {
			others++
		}
	}
	slices.Sort(tools)
	return tools, others
}

// few returns a text that names the first elements of a list, and counts the rest.
func few(names []string) string {
	switch len(names) {
	case 0:
		return "nothing"
	case 1:
		return oneLine(names[0])
	case 2:
		return oneLine(names[0]) + " and " + oneLine(names[1])
	}
	return fmt.Sprintf("%s and %d more", oneLine(names[0]), len(names)-1)
}
