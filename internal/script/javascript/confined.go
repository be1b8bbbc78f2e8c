package javascript

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
	"github.com/toolsrv/toolsrv/internal/text"
)

// confined is the namespace of files below Options.Root. esbuild itself opens none of them. So a link, a pipe, or a package.json above the
// root has no effect.
const confined = "root"

// nothing is the namespace of files that a package leaves out in browsers.
const nothing = "nothing"

const (
	// maxFile is the largest size of a confined file, maxTotal of everything that a script imports, and maxFiles the largest number of files.
	maxFile  = 2 << 20
	maxTotal = 16 << 20
	maxFiles = 2000
	// maxBrackets and maxChain bound what token.Nesting counts in a file. esbuild recurses with some kilobytes of stack for each level, and Go
	// ends the process at a gigabyte of stack. The time for nested arrow functions grows with the cube of their depth, and esbuild can't be
	// stopped within a file.
	maxBrackets = 200
	maxChain    = 2000
)

// confine restricts reading to files below root.
func (m *modules) confine(root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, m.entry)
	if err != nil || !filepath.IsLocal(relative) {
		return fmt.Errorf("%s is not in %s", m.entry, root)
	}
	m.inRoot = filepath.ToSlash(relative)
	m.root, err = os.OpenRoot(root)
	return err
}

func (m *modules) setupConfined(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: `.*`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		if args.Kind == api.ResolveEntryPoint {
			return api.OnResolveResult{Path: m.inRoot, Namespace: confined}, nil
		}
		if args.Namespace != confined {
			return refuse("only the script's own files can import others")
		}
		found, err := m.find(args.Path, args.Importer, args.Kind)
		if err != nil {
			return refuse("%v", err)
		}
		return found, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: nothing}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
		return api.OnLoadResult{Contents: new(string), Loader: api.LoaderJS}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: confined}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		content, err := m.readConfined(args.Path)
		if err == nil {
			err = checkNesting(args.Path, string(content))
		}
		if err != nil {
			return api.OnLoadResult{Errors: []api.Message{{Text: fmt.Sprintf("%s can't be read: %v", m.shown(args.Path), err)}}}, nil
		}
		whole := string(content)
		if !strings.Contains(args.Path, "node_modules/") && slices.Contains(Extensions(), path.Ext(args.Path)) {
			if rewritten, changed := withoutNamespace(whole); changed {
				m.keep(args.Path, whole)
				whole = rewritten
			}
		}
		return api.OnLoadResult{Contents: &whole, Loader: api.LoaderDefault}, nil
	})
}

// checkNesting refuses files that are nested too deeply for esbuild. Some of the others take esbuild seconds, so a server bundles in a process
// that it can end.
func checkNesting(name, content string) error {
	switch path.Ext(name) {
	case ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json":
	case ".tsx", ".jsx":
		return errors.New("JSX is not supported here: bundle it with toolsrv build")
	default:
		return nil
	}
	brackets, chain := token.Nesting(content)
	if brackets > maxBrackets {
		return fmt.Errorf("its brackets are nested %d deep; at most %d are allowed", brackets, maxBrackets)
	}
	if chain > maxChain {
		return fmt.Errorf("a statement in it has %d tokens in a chain; at most %d are allowed", chain, maxChain)
	}
	return nil
}

// readConfined reads a file below the root. The file must be a regular one, even if it is replaced meanwhile.
func (m *modules) readConfined(name string) ([]byte, error) {
	m.read(filepath.Join(m.root.Name(), filepath.FromSlash(name)))
	content, err := m.contentOf(name)
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("it has more than %s", text.Size(maxFile))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += int64(len(content))
	if m.total > maxTotal || len(m.inputs) > maxFiles {
		return nil, fmt.Errorf("the script imports more than %s or %d files: bundle it with toolsrv build", text.Size(maxTotal), maxFiles)
	}
	return content, nil
}

// contentOf returns the content of a file below the root. If the content is larger than maxFile, it returns only the beginning.
func (m *modules) contentOf(name string) ([]byte, error) {
	if m.isGiven(name) {
		return m.content, nil
	}
	if !m.isFile(name) {
		return nil, errors.New("it is not a file below the tools directory")
	}
	f, err := m.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return content, cause(err)
}

// isGiven reports whether a file is the script, whose content is given.
func (m *modules) isGiven(name string) bool { return m.content != nil && name == m.inRoot }

// isFile reports whether there is a regular file. Links that stay below the root are followed; others lead nowhere.
func (m *modules) isFile(name string) bool {
	if m.isGiven(name) {
		return true
	}
	info, err := m.root.Stat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular()
}

// cause returns an error without the path of a file on this machine.
func cause(err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// endings may be left out of the name of an imported file.
var endings = []string{"", ".ts", ".mts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js", "/index.mjs", "/index.cjs", "/index.json"}

// file finds the file that a path means, as TypeScript and Node's require do: with any ending, and .ts if the path has .js.
func (m *modules) file(name string) (string, bool) {
	if name = path.Clean(name); !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", false
	}
	candidates := make([]string, 0, len(endings)+1)
	for _, ending := range endings {
		candidates = append(candidates, name+ending)
	}
	for _, pair := range [][2]string{{".js", ".ts"}, {".mjs", ".mts"}} {
		if stem, ok := strings.CutSuffix(name, pair[0]); ok {
			candidates = append(candidates, stem+pair[1])
		}
	}
	for _, candidate := range candidates {
		if m.isFile(candidate) {
			return candidate, true
		}
	}
	for _, candidate := range candidates {
		m.read(filepath.Join(m.root.Name(), filepath.FromSlash(candidate))) // the file may be made later
	}
	return "", false
}

// find finds what a file below the root imports.
func (m *modules) find(what, importer string, kind api.ResolveKind) (api.OnResolveResult, error) {
	folder := path.Dir(importer)
	from := m.packageOf(importer)
	var found string
	var effects api.SideEffects
	switch {
	case what == "." || what == ".." || strings.HasPrefix(what, "./") || strings.HasPrefix(what, "../"):
		joined := path.Join(folder, what)
		if !filepath.IsLocal(filepath.FromSlash(joined)) {
			return api.OnResolveResult{}, fmt.Errorf("%q leads out of the tools directory", what)
		}
		var ok bool
		if found, ok = m.file(joined); !ok {
			return api.OnResolveResult{}, fmt.Errorf("there is no file %q", what)
		}
	case strings.HasPrefix(what, "/") || strings.Contains(what, ":") || strings.Contains(what, "\\") || strings.HasPrefix(what, "#"):
		return api.OnResolveResult{}, fmt.Errorf("%q can't be imported: write a path that begins with ./ or ../, or the name of a package", what)
	default:
		instead, ok := from.instead(what)
		if ok {
			return m.replaced(from, instead)
		}
		pkg, inside := packageName(what)
		home, err := m.installed(folder, pkg)
		if err != nil {
			return api.OnResolveResult{}, err
		}
		if from, err = m.readPackage(home); err != nil {
			return api.OnResolveResult{}, err
		}
		if found, err = m.inPackage(from, inside, what, kind); err != nil {
			return api.OnResolveResult{}, err
		}
	}
	if from != nil {
		effects = from.effects
		if instead, ok := from.instead("./" + strings.TrimPrefix(found, from.home+"/")); ok {
			return m.replaced(from, instead)
		}
	}
	return api.OnResolveResult{Path: found, Namespace: confined, SideEffects: effects}, nil
}

// installed finds the folder of a package as Node does: in the nearest node_modules that contains it.
func (m *modules) installed(folder, pkg string) (home string, err error) {
	for at := folder; ; at = path.Dir(at) {
		if path.Base(at) != "node_modules" {
			home := path.Join(at, "node_modules", pkg)
			if info, err := m.root.Stat(filepath.FromSlash(home)); err == nil && info.IsDir() {
				return home, nil
			}
		}
		if at == "." {
			return "", fmt.Errorf("there is no package %q in a node_modules below the tools directory: install it there, or bundle the script with toolsrv build", pkg)
		}
	}
}

// packageName splits the name of an import into the name of a package and a path inside it: "." or a path that begins with "./".
func packageName(what string) (name, inside string) {
	parts := strings.SplitN(what, "/", 3)
	n := 1
	if strings.HasPrefix(what, "@") && len(parts) > 1 {
		n = 2
	}
	name = strings.Join(parts[:n], "/")
	if rest := strings.TrimPrefix(what[len(name):], "/"); rest != "" {
		return name, "./" + rest
	}
	return name, "."
}
