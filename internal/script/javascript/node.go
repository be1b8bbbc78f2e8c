package javascript

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// standIns replace those modules of Node that make sense without files, network and processes. They are small, and use what the engine has anyway. An
// installed package with the same name is preferred.
//
//go:embed node
var standIns embed.FS

// inNode is the namespace of standIns.
const inNode = "node"

// absent is the namespace of modules that do not exist and throw when they are loaded: a package that loads one with require may work without it.
const absent = "absent"

// without says why modules of Node are missing.
var without = map[string]string{
	"a tool has only granted files, which toolsrv:files reads":     "fs",
	"a tool has no sockets: use fetch":                             "dgram dns http http2 https net tls quic",
	"a tool can't start programs":                                  "child_process cluster repl",
	"a tool has one thread":                                        "async_hooks worker_threads",
	"a tool has no terminal":                                       "readline tty",
	"a tool is not an operating system":                            "domain inspector module os sea sqlite trace_events v8 vm wasi",
	"the engine has no streams":                                    "stream",
	"the engine has no compression":                                "zlib",
	"the engine has no tests: run them natively, with node --test": "test",
	"the engine is not Node":                                       "assert buffer constants crypto diagnostics_channel events path perf_hooks process punycode querystring string_decoder sys timers url util",
}

// packages are npm packages that can replace the module of Node with the same name.
var packages = []string{"assert", "buffer", "events", "path", "process", "punycode", "querystring", "string_decoder", "url", "util"}

// builtins are the names of Node's modules that need no prefix.
func builtins() []string {
	var out []string
	for _, names := range without {
		out = append(out, strings.Fields(names)...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(out, func(name string) bool { return name == "test" || name == "sea" || name == "sqlite" || name == "quic" })
}

// reason says why a module of Node is missing, and what to do.
func reason(name string) string {
	base, _, _ := strings.Cut(strings.TrimPrefix(name, "node:"), "/")
	why := "the engine is not Node"
	for reason, names := range without {
		if slices.Contains(strings.Fields(names), base) {
			why = reason
		}
	}
	if slices.Contains(packages, base) {
		why += fmt.Sprintf("; npm has a replacement: run npm install %s", base)
	}
	return fmt.Sprintf("%s is not available: %s", name, why)
}

// setupNode tells esbuild what to do with imports of Node's modules.
func (m *modules) setupNode(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: `^node:|^(` + strings.Join(builtins(), "|") + `)(/.*)?$`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		return m.resolveBuiltin(b, args)
	})
	b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: inNode}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		content, err := standIns.ReadFile("node/" + args.Path + ".js")
		if err != nil {
			return api.OnLoadResult{}, err
		}
		code := string(content)
		return api.OnLoadResult{Contents: &code, Loader: api.LoaderJS}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: absent}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		code := fmt.Sprintf("throw new Error(%q);", reason(args.Path))
		return api.OnLoadResult{Contents: &code, Loader: api.LoaderJS}, nil
	})
}

// resolveBuiltin finds a replacement for a module of Node: a package with that name, if one is installed, or one of standIns.
func (m *modules) resolveBuiltin(b api.PluginBuild, args api.OnResolveArgs) (api.OnResolveResult, error) {
	if args.PluginData == absent {
		return api.OnResolveResult{}, nil // this plugin's own call of Resolve: leave it to esbuild
	}
	name := strings.TrimPrefix(args.Path, "node:")
	if m.root != nil {
		if found, err := m.find(name, args.Importer, args.Kind); err == nil {
			return found, nil
		}
	} else {
		found := b.Resolve(name, api.ResolveOptions{Importer: args.Importer, ResolveDir: args.ResolveDir, Kind: args.Kind, PluginData: absent})
		if len(found.Errors) == 0 {
			if name == args.Path {
				return api.OnResolveResult{}, nil // a package is installed, or the importing package can do without the module
			}
			return api.OnResolveResult{Path: found.Path, Namespace: found.Namespace}, nil
		}
	}
	if _, err := standIns.ReadFile("node/" + name + ".js"); err == nil {
		return api.OnResolveResult{Path: name, Namespace: inNode, SideEffects: api.SideEffectsFalse}, nil
	}
	if args.Kind == api.ResolveJSRequireCall {
		return api.OnResolveResult{Path: args.Path, Namespace: absent}, nil
	}
	return refuse("%s (%s imports it)", reason(args.Path), m.relative(args.Importer))
}
