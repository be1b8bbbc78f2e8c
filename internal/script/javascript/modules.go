package javascript

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/comment"
)

// own are the modules that the engine has for scripts. A colon in their names may also be written as a slash, as Node needs it in tests.
var own = []string{"toolsrv", "toolsrv:files", "toolsrv:kv", "toolsrv:secrets", "toolsrv:settings", "toolsrv:tools"}

// modules finds what a script imports.
type modules struct {
	entry  string // the script
	folder string // its folder: names are shown relative to it

	root   *os.Root // nil: reading is not restricted
	inRoot string   // the script in root, with slashes
	total  int64    // bytes that were read below root

	content []byte // content of the script, in place of the file on disk; nil: read the file

	mu       sync.Mutex
	inputs   map[string]bool
	packages map[string]*nodePackage // below root, by folder
	// originals are files that were changed for esbuild, as their authors wrote them, by the names that esbuild shows.
	originals map[string]string
}

// setup tells esbuild which imports it must not resolve itself.
func (m *modules) setup(b api.PluginBuild) {
	m.inputs, m.packages, m.originals = map[string]bool{}, map[string]*nodePackage{}, map[string]string{}
	b.OnResolve(api.OnResolveOptions{Filter: `^toolsrv([/:].*)?$|^#host$`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		if args.Kind == api.ResolveJSRequireCall {
			return refuse(`require(%q) is not available: the engine's modules are imported, as in import { tool } from "toolsrv"`, args.Path)
		}
		name := strings.Replace(args.Path, "/", ":", 1)
		if !slices.Contains(own, name) {
			if name == "toolsrv:testing" || name == "toolsrv:register" {
				return refuse(`%q is only available in tests: a script imports "%s"`, args.Path, strings.Join(own, `", "`))
			}
			return refuse(`there is no module %q: a script imports "%s"`, args.Path, strings.Join(own, `", "`))
		}
		return api.OnResolveResult{Path: name, External: true}, nil
	})
	m.setupNode(b)
	if m.root != nil {
		m.setupConfined(b)
		return
	}
	b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: "file"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		m.read(args.Path)
		if !strings.Contains(args.Path, "node_modules") && slices.Contains(Extensions(), filepath.Ext(args.Path)) {
			if content, err := os.ReadFile(args.Path); err == nil {
				if rewritten, changed := withoutNamespace(string(content)); changed {
					m.keep(args.Path, string(content))
					return api.OnLoadResult{Contents: &rewritten, Loader: api.LoaderDefault, ResolveDir: filepath.Dir(args.Path)}, nil
				}
			}
		}
		return api.OnLoadResult{}, nil
	})
}

// read records that a file was read.
func (m *modules) read(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inputs[path] = true
}

// keep records the original of a file of which esbuild gets a changed version.
func (m *modules) keep(path, original string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.originals[m.relative(path)] = original
}

// relative is like shown, but takes a file's path in the form in which esbuild passes it to plugins.
func (m *modules) relative(file string) string {
	if m.root == nil {
		if relative, err := filepath.Rel(m.folder, file); err == nil {
			file = filepath.ToSlash(relative)
		}
	}
	return m.shown(file)
}

// shown returns the name by which a source is shown to people, relative to the script's folder.
func (m *modules) shown(source string) string {
	source = strings.TrimPrefix(source, confined+":")
	for _, space := range []string{absent, inNode} {
		if name, ok := strings.CutPrefix(source, space+":"); ok {
			return "node_modules/node:" + strings.TrimPrefix(name, "node:") // shown like a file of a package, not like one of the author's own
		}
	}
	if m.root != nil {
		if relative, err := filepath.Rel(filepath.FromSlash(path.Dir(m.inRoot)), filepath.FromSlash(source)); err == nil {
			return filepath.ToSlash(relative)
		}
	}
	return source
}

func refuse(format string, args ...any) (api.OnResolveResult, error) {
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf(format, args...)}}}, nil
}

// options returns esbuild's options. The result is one ES module for an engine that supports ES2023.
func (m *modules) options() api.BuildOptions {
	o := api.BuildOptions{
		EntryPoints:   []string{m.entry},
		AbsWorkingDir: m.folder,
		Outfile:       filepath.Join(m.folder, "bundle.js"),
		Bundle:        true,
		// What packages publish for browsers and for servers at the edge suits the engine best.
		Platform:      api.PlatformBrowser,
		Format:        api.FormatESModule,
		Target:        api.ES2023,
		Charset:       api.CharsetUTF8,
		Sourcemap:     api.SourceMapExternal,
		LegalComments: api.LegalCommentsEndOfFile,
		Conditions:    conditions(),
		Define:        map[string]string{"process.env.NODE_ENV": `"production"`, "global": "globalThis"},
		Loader:        loaders(),
		LogLevel:      api.LogLevelSilent,
		LogLimit:      10,
		Plugins:       []api.Plugin{{Name: "toolsrv", Setup: m.setup}},
	}
	if m.root != nil {
		o.TsconfigRaw = "{}" // nothing above the folder matters
	}
	return o
}

// comments returns the bundle's file tools.json.
func (m *modules) comments() ([]byte, error) {
	read := func() ([]byte, error) { return os.ReadFile(m.entry) }
	if m.root != nil {
		read = func() ([]byte, error) { return m.readConfined(m.inRoot) }
	}
	source, err := read()
	if err != nil {
		return nil, err
	}
	all := comment.Read(filepath.Base(m.entry), string(source))
	if all == nil {
		all = []comment.Comment{}
	}
	return json.Marshal(all)
}

// positions returns the bundle's file source.map.
func (m *modules) positions(text []byte) ([]byte, error) {
	var from sourceMap
	if err := json.Unmarshal(text, &from); err != nil {
		return nil, err
	}
	for i, source := range from.Sources {
		from.Sources[i] = m.shown(source)
		if original, ok := m.originals[from.Sources[i]]; ok && i < len(from.SourcesContent) {
			from.SourcesContent[i] = &original
		}
	}
	return from.compact(filepath.Base(m.entry))
}
