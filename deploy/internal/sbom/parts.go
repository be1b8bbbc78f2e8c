package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// Parts returns what the program for a system contains: Go's library, the modules that Go has linked, the libraries of the pages, and the
// interpreters. NOTICE has the licences; a part that it does not list is an error.
func Parts(r *release.Release, s release.System) ([]Part, error) {
	info, err := buildinfo.ReadFile(r.Program(s))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(r.Root, "NOTICE"))
	if err != nil {
		return nil, err
	}
	listed := readNotice(string(text))
	licenses := map[string]string{}
	for _, p := range listed["Linked"] {
		licenses[p.Name+" "+p.Version] = p.License
	}
	parts := []Part{{Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), License: licenses["Go's library and runtime "]}}
	parts[0].URL = "pkg:golang/std@" + parts[0].Version
	modules, err := Modules(info.Deps)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		m.License = licenses[m.Name+" "+m.Version]
		parts = append(parts, m)
	}
	for _, p := range parts {
		if p.License == "" {
			return nil, fmt.Errorf("NOTICE has no licence of %s %s: run make licenses", p.Name, p.Version)
		}
	}
	for _, p := range listed["pages"] {
		p.URL = "pkg:npm/" + p.Name + "@" + p.Version
		parts = append(parts, p)
	}
	engines, err := enginesOf(r, listed)
	return append(parts, engines...), err
}

// Modules returns the modules that Go has linked.
func Modules(dependencies []*debug.Module) ([]Part, error) {
	var parts []Part
	for _, m := range dependencies {
		if m.Replace != nil {
			m = m.Replace
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s %s has %q in place of a checksum: require a published version", m.Path, m.Version, m.Sum)
		}
		parts = append(parts, Part{
			Name: m.Path, Version: m.Version, SHA256: hex.EncodeToString(sum),
			URL: "pkg:golang/" + strings.ToLower(m.Path) + "@" + escape(m.Version),
		})
	}
	return parts, nil
}

// readNotice returns the lists in NOTICE, by the word that identifies the section.
func readNotice(text string) map[string][]Part {
	section := regexp.MustCompile(`^(?:(Linked)|In the (pages)|In the interpreter for (\w+)).*:$`)
	row := regexp.MustCompile(`^  (\S.*?) {2,}(\S.*)$`)
	listed := map[string][]Part{}
	var current string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := section.FindStringSubmatch(line); m != nil {
			current = m[1] + m[2] + m[3]
			continue
		}
		m := row.FindStringSubmatch(line)
		if current == "" || m == nil {
			continue
		}
		p := Part{Name: m[1], License: m[2]}
		if i := strings.LastIndexByte(p.Name, ' '); i >= 0 && regexp.MustCompile(`^v?[0-9]`).MatchString(p.Name[i+1:]) {
			p.Name, p.Version = p.Name[:i], p.Name[i+1:]
		}
		listed[current] = append(listed[current], p)
	}
	return listed
}

// enginesOf returns the interpreters with the parts that they were built from, as NOTICE lists them. Parts from a registry have their address and
// digest.
func enginesOf(r *release.Release, listed map[string][]Part) ([]Part, error) {
	dist := filepath.Join(r.Root, "internal", "script", "engine", "dist")
	var engines []Part
	for _, e := range []struct{ name, language, folder string }{{"javascript", "JavaScript", "js"}, {"python", "Python", "python"}} {
		wasm, err := os.ReadFile(filepath.Join(dist, e.name+".wasm.gz"))
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(dist, e.name+".about.json"))
		if err != nil {
			return nil, err
		}
		var about struct{ Revision string }
		if err := json.Unmarshal(text, &about); err != nil {
			return nil, fmt.Errorf("%s.about.json: %w", e.name, err)
		}
		sources, err := readSources(r.Root, e.folder)
		if err != nil {
			return nil, err
		}
		if len(listed[e.language]) == 0 {
			return nil, fmt.Errorf("NOTICE lists nothing that the interpreter for %s contains: run make licenses", e.language)
		}
		sum := sha256.Sum256(wasm)
		engine := Part{Name: "toolsrv engine for " + e.name, Version: about.Revision, License: "Apache-2.0", SHA256: hex.EncodeToString(sum[:])}
		for _, p := range listed[e.language] {
			name, _, isPart := strings.Cut(p.Name, ",")
			source, found := sources[strings.ToLower(name)]
			if !found && !isPart {
				return nil, fmt.Errorf("NOTICE lists %s in the interpreter for %s, and no file of sdk/%s/engine says where it comes from", name, e.language, e.folder)
			}
			p.Name, p.URL, p.SHA256 = name, source.URL, source.SHA256
			engine.Parts = append(engine.Parts, p)
		}
		engines = append(engines, engine)
	}
	return engines, nil
}

// readSources returns where an engine's parts come from, by their names in lower case.
func readSources(root, folder string) (map[string]Part, error) {
	sources := map[string]Part{}
	read := func(file string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, "sdk", filepath.FromSlash(file)))
		return string(text), err
	}
	compiler, err := read("engines/cache.sh")
	if err != nil {
		return nil, err
	}
	zig := regexp.MustCompile(`(?m)^zig_version=(\S+)\n(?:#.*\n)*zig_sha256="([0-9a-f]{64})\b`).FindStringSubmatch(compiler)
	if zig == nil {
		return nil, errors.New("sdk/engines/cache.sh does not say which zig compiles the engines, with its SHA-256")
	}
	sources["zig"] = Part{URL: "pkg:pypi/ziglang@" + zig[1], SHA256: zig[2]}
	packages, err := read(folder + "/engine/requirements.txt")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)==(\S+) --hash=sha256:([0-9a-f]{64})$`).FindAllStringSubmatch(packages, -1) {
		sources[m[1]] = Part{URL: "pkg:pypi/" + m[1] + "@" + m[2], SHA256: m[3]}
	}
	list, err := read(folder + "/engine/sources.txt")
	if err != nil {
		return nil, err
	}
	var crate Part // the file that the last line "crate" names; a line "version" says which version it has
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 4 && words[0] == "crate":
			crate = Part{URL: "pkg:cargo/" + words[1] + "@" + words[2], SHA256: words[3]}
		case len(words) == 4 && words[0] == "npm": // for tests
		case len(words) == 3 && words[0] == "version":
			sources[words[1]] = crate
		case len(words) == 4: // a Debian source package
			_, version, _ := strings.Cut(words[2], "_")
			version, _, _ = strings.Cut(version, ".orig.")
			sources[words[0]] = Part{URL: "pkg:deb/debian/" + words[1] + "@" + escape(version) + "?arch=source", SHA256: words[3]}
		default:
			return nil, fmt.Errorf("sdk/%s/engine/sources.txt has an invalid line: %s", folder, line)
		}
	}
	return sources, nil
}
