package javascript

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// conditions returns names under which a package may have files that suit the engine, besides "browser", "default" and "import" or "require".
func conditions() []string { return []string{"toolsrv", "worker", "module"} }

// A nodePackage is the part of a package.json that matters here.
type nodePackage struct {
	home    string // its folder below the root
	effects api.SideEffects
	exports json.RawMessage
	main    []string           // files that may be the package's main file, the best first
	browser map[string]*string // replacements of files and packages; nil for leaving one out
}

// readPackage reads a package's package.json, which may be missing.
func (m *modules) readPackage(home string) (*nodePackage, error) {
	m.mu.Lock()
	known := m.packages[home]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	p := &nodePackage{home: home}
	if file := path.Join(home, "package.json"); m.isFile(file) {
		content, err := m.readConfined(file)
		if err == nil {
			err = jsontree.Check(content, jsontree.MaxDepth)
		}
		var about struct {
			Exports               json.RawMessage
			Browser, Module, Main json.RawMessage
			SideEffects           json.RawMessage `json:"sideEffects"`
		}
		if err == nil {
			err = json.Unmarshal(content, &about)
		}
		if err != nil {
			return nil, fmt.Errorf("%s/package.json is not valid: %w", home, err)
		}
		if string(about.Exports) != "null" {
			p.exports = about.Exports
		}
		if string(about.SideEffects) == "false" {
			p.effects = api.SideEffectsFalse
		}
		for _, field := range []json.RawMessage{about.Browser, about.Module, about.Main} {
			var file string
			if json.Unmarshal(field, &file) == nil && file != "" {
				p.main = append(p.main, file)
			}
		}
		var browser map[string]any
		if json.Unmarshal(about.Browser, &browser) == nil {
			p.browser = map[string]*string{}
			for from, to := range browser {
				if file, ok := to.(string); ok {
					p.browser[from] = &file
				} else if to == false {
					p.browser[from] = nil
				}
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.packages[home] = p
	return p, nil
}

// packageOf returns the package that a file of the root belongs to, or nil.
func (m *modules) packageOf(file string) *nodePackage {
	const folder = "node_modules/"
	at := strings.LastIndex("/"+file, "/"+folder)
	if at < 0 {
		return nil
	}
	name, _ := packageName(file[at+len(folder):])
	p, err := m.readPackage(file[:at+len(folder)] + name)
	if err != nil {
		return nil
	}
	return p
}

// instead returns the replacement of a package, or of a file such as "./file.js", and whether there is one.
func (p *nodePackage) instead(what string) (to *string, ok bool) {
	if p == nil {
		return nil, false
	}
	for _, name := range []string{what, strings.TrimSuffix(what, ".js"), strings.TrimSuffix(what, "/index.js")} {
		if to, ok := p.browser[name]; ok {
			return to, true
		}
	}
	return nil, false
}

// replaced resolves the replacement that a package has.
func (m *modules) replaced(p *nodePackage, to *string) (api.OnResolveResult, error) {
	if to == nil {
		return api.OnResolveResult{Path: p.home, Namespace: nothing}, nil
	}
	joined := path.Join(p.home, *to)
	if !strings.HasPrefix(*to, ".") {
		pkg, inside := packageName(*to)
		home, err := m.installed(p.home, pkg)
		if err != nil {
			return api.OnResolveResult{}, err
		}
		joined = path.Join(home, inside)
	}
	found, ok := m.file(joined)
	if !ok {
		return api.OnResolveResult{}, fmt.Errorf("the package %s has no file %q", p.home, *to)
	}
	return api.OnResolveResult{Path: found, Namespace: confined, SideEffects: p.effects}, nil
}

// inPackage finds a file of a package as Node does: by exports in its package.json, or by main.
func (m *modules) inPackage(p *nodePackage, inside, what string, kind api.ResolveKind) (name string, err error) {
	var targets []string
	switch {
	case len(p.exports) > 0:
		known := append(conditions(), "browser", "default", "import")
		if kind == api.ResolveJSRequireCall || kind == api.ResolveJSRequireResolve {
			known = append(conditions(), "browser", "default", "require")
		}
		target, ok := exported(p.exports, inside, known)
		if !ok {
			return "", fmt.Errorf("the package does not export %q", what)
		}
		targets = []string{target}
	case inside == ".":
		targets = append(slices.Clone(p.main), "index")
	default:
		targets = []string{inside}
	}
	for _, target := range targets {
		joined := path.Join(p.home, target)
		if found, ok := m.file(joined); ok && strings.HasPrefix(joined, p.home+"/") {
			return found, nil
		}
	}
	return "", fmt.Errorf("the package has no file for %q", what)
}

// exported returns the file for a path in a package, by the package's exports.
func exported(exports json.RawMessage, inside string, known []string) (target string, ok bool) {
	subpaths := false
	isObject, err := jsontree.Members(exports, func(name string, _ []byte) error {
		subpaths = subpaths || strings.HasPrefix(name, ".")
		return nil
	})
	if err != nil {
		return "", false
	}
	if !isObject || !subpaths {
		if inside != "." {
			return "", false
		}
		return chosen(exports, "", known, 0)
	}
	var value []byte
	var longest, star string
	_, err = jsontree.Members(exports, func(name string, v []byte) error {
		if name == inside {
			longest, star, value = name+"\xff", "", v // nothing is better
			return nil
		}
		before, after, isPattern := strings.Cut(name, "*")
		if isPattern && len(inside) >= len(before)+len(after) && strings.HasPrefix(inside, before) && strings.HasSuffix(inside, after) && len(before) > len(longest) {
			longest, star, value = before, inside[len(before):len(inside)-len(after)], v
		}
		return nil
	})
	if err != nil || value == nil {
		return "", false
	}
	return chosen(value, star, known, 0)
}

// chosen returns the path in a value of exports, under the conditions that hold.
func chosen(value []byte, star string, known []string, depth int) (target string, ok bool) {
	if depth > 10 {
		return "", false
	}
	var file string
	if json.Unmarshal(value, &file) == nil && file != "" {
		return strings.ReplaceAll(file, "*", star), strings.HasPrefix(file, "./")
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		for _, v := range list {
			if target, ok := chosen(v, star, known, depth+1); ok {
				return target, true
			}
		}
		return "", false
	}
	// The first condition that holds decides, in the package's own order.
	_, err := jsontree.Members(value, func(name string, v []byte) error {
		if !ok && slices.Contains(known, name) {
			target, ok = chosen(v, star, known, depth+1)
		}
		return nil
	})
	return target, ok && err == nil
}
