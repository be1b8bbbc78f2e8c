package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/santhosh-tekuri/jsonschema/v5"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// check compares a release's statements about itself with its content, with the checkout that it was made from, and with the schemas of the programs
// that read them.
func check(t *testing.T, root, out string) {
	sums := sumsOf(t, out)
	t.Run("checksums", func(t *testing.T) { checkSums(t, out, sums) })
	t.Run("archives", func(t *testing.T) { checkArchives(t, root, out) })
	t.Run("provenance", func(t *testing.T) { checkProvenance(t, root, out, sums) })
	t.Run("sbom", func(t *testing.T) { checkSBOM(t, root, out) })
	t.Run("server.json", func(t *testing.T) { checkServer(t, out, sums) })
	t.Run("mcpb", func(t *testing.T) { checkBundles(t, root, out) })
}

func checkSums(t *testing.T, out string, sums map[string][sha256.Size]byte) {
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if name != "checksums.txt" {
			fmt.Fprintf(&want, "%x  %s\n", sums[name], name)
		}
	}
	if got := string(content(t, out, "checksums.txt")); got != want.String() {
		t.Errorf("checksums.txt:\n%swant\n%s", got, want.String())
	}
	// Names are unique across folders, since downloads lose the folder.
	folders := map[string]string{}
	for name := range sums {
		base := path.Base(name)
		if other, taken := folders[base]; taken {
			t.Errorf("%s and %s have the same name", name, path.Join(other, base))
		}
		folders[base] = path.Dir(name)
	}
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", "checksums.txt")
	cmd.Dir = out
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func checkProvenance(t *testing.T, root, out string, sums map[string][sha256.Size]byte) {
	type resource struct {
		Name   string            `json:"name"`
		URI    string            `json:"uri"`
		Digest map[string]string `json:"digest"`
	}
	var s struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     struct {
			BuildDefinition struct {
				BuildType            string            `json:"buildType"`
				ExternalParameters   map[string]string `json:"externalParameters"`
				InternalParameters   map[string]string `json:"internalParameters"`
				ResolvedDependencies []resource        `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
			RunDetails struct {
				Builder struct {
					ID string `json:"id"`
				} `json:"builder"`
			} `json:"runDetails"`
		} `json:"predicate"`
	}
	decode(t, out, "toolsrv.intoto.json", &s)
	checkForm(t, content(t, out, "toolsrv.intoto.json"))
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" || s.Predicate.RunDetails.Builder.ID == "" {
		t.Errorf("the types are %q and %q, the builder %q", s.Type, s.PredicateType, s.Predicate.RunDetails.Builder.ID)
	}
	subjects := map[string]string{}
	for _, r := range s.Subject {
		subjects[r.Name] = r.Digest["sha256"]
	}
	for name, sum := range sums {
		if got, want := subjects[name], hex.EncodeToString(sum[:]); got != want && name != "toolsrv.intoto.json" && name != "checksums.txt" {
			t.Errorf("%s has the digest %q in the statement, want %s", name, got, want)
		}
		delete(subjects, name)
	}
	if len(subjects) > 0 {
		t.Errorf("the statement names files that do not exist: %v", subjects)
	}

	definition := s.Predicate.BuildDefinition
	commit := strings.TrimSpace(output(t, root, nil, "git", "rev-parse", "HEAD"))
	if got := definition.ExternalParameters; got["commit"] != commit || got["command"] != "make dist" {
		t.Errorf("the parameters are %v: the commit is %s", got, commit)
	}
	page, anchor, _ := strings.Cut(strings.TrimPrefix(definition.BuildType, "https://github.com/toolsrv/toolsrv/blob/main/"), "#")
	if text := strings.ToLower(string(content(t, root, page))); !strings.Contains(text, "\n## "+strings.ReplaceAll(anchor, "-", " ")+"\n") {
		t.Errorf("%s does not explain the build type %s", page, definition.BuildType)
	}
	used := map[string]map[string]string{}
	for _, d := range definition.ResolvedDependencies {
		used[d.URI] = d.Digest
		for kind, digest := range d.Digest {
			if want := map[string]int{"gitCommit": 40, "dirHash": 64, "sha256": 64}[kind]; len(digest) != want {
				t.Errorf("%s has the digest %s %q", d.URI, kind, digest)
			}
		}
	}
	if got := used["git+https://github.com/toolsrv/toolsrv"]["gitCommit"]; got != commit {
		t.Errorf("the statement is about the commit %q, want %s", got, commit)
	}
	for _, s := range release.Systems() {
		for _, m := range modulesOf(t, root, s) {
			if used[packageURL(m)]["dirHash"] == "" {
				t.Errorf("the statement lacks %s %s", m[0], m[1])
			}
		}
	}
	for _, source := range sourcesOfEngines(t, root) {
		if !slices.ContainsFunc(definition.ResolvedDependencies, func(d resource) bool { return d.Digest["sha256"] == source }) {
			t.Errorf("the statement lacks the engines' source %s", source)
		}
	}
}

// checkForm decodes a statement into in-toto's own types, and its predicate into those of SLSA. Unknown members are errors.
func checkForm(t *testing.T, text []byte) {
	t.Helper()
	var s intoto.Statement
	if err := protojson.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	var p provenance.Provenance
	predicate, err := protojson.Marshal(s.GetPredicate())
	if err == nil {
		err = protojson.Unmarshal(predicate, &p)
	}
	if err := errors.Join(err, s.Validate(), p.Validate()); err != nil {
		t.Error(err)
	}
}

func checkSBOM(t *testing.T, root, out string) {
	valid := cycloneSchema(t)
	sources := sourcesOfEngines(t, root)
	for _, s := range release.Systems() {
		t.Run(s.String(), func(t *testing.T) {
			name := "toolsrv_" + s.String()
			cyclone := content(t, out, name+".cdx.json")
			var value any
			if err := json.Unmarshal(cyclone, &value); err != nil {
				t.Fatal(err)
			}
			if err := valid.Validate(value); err != nil {
				t.Errorf("CycloneDX: %v", err)
			}
			for _, key := range []string{"serialNumber", "metadata", "components", "dependencies"} {
				if value.(map[string]any)[key] == nil {
					t.Errorf("CycloneDX: no %s", key)
				}
			}
			spdx := content(t, out, name+".spdx.json")
			checkSPDX(t, spdx)
			for _, text := range [][]byte{cyclone, spdx} {
				for _, m := range modulesOf(t, root, s) {
					if !bytes.Contains(text, []byte(`"`+packageURL(m)+`"`)) || !bytes.Contains(text, []byte(`"`+m[0]+`"`)) {
						t.Errorf("%s %s is missing", m[0], m[1])
					}
				}
				for _, source := range sources {
					if !bytes.Contains(text, []byte(source+`"`)) {
						t.Errorf("the engines' source %s is missing", source)
					}
				}
			}
		})
	}
}

// checkSPDX reads a document with SPDX's own library, and checks what the specification requires but the library does not check.
func checkSPDX(t *testing.T, text []byte) {
	d, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d.DataLicense != "CC0-1.0" || d.SPDXIdentifier != "DOCUMENT" || d.DocumentName == "" || !strings.HasPrefix(d.DocumentNamespace, "https://") ||
		strings.Contains(d.DocumentNamespace, "#") || len(d.CreationInfo.Creators) == 0 || !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`).MatchString(d.CreationInfo.Created) {
		t.Errorf("SPDX: the document lacks something: %+v, made %+v", d, d.CreationInfo)
	}
	known := map[common.ElementID]bool{"DOCUMENT": true}
	for _, p := range d.Packages {
		if id := string(p.PackageSPDXIdentifier); known[p.PackageSPDXIdentifier] || !regexp.MustCompile(`^[a-zA-Z0-9.-]+$`).MatchString(id) {
			t.Errorf("SPDX: the identifier %q is used twice, or empty", id)
		}
		known[p.PackageSPDXIdentifier] = true
		if p.PackageName == "" || p.PackageDownloadLocation == "" || p.PackageLicenseDeclared == "" || p.FilesAnalyzed {
			t.Errorf("SPDX: package %s lacks something: %+v", p.PackageName, p)
		}
	}
	if len(d.Relationships) != len(d.Packages) {
		t.Errorf("SPDX: %d relationships of %d packages", len(d.Relationships), len(d.Packages))
	}
	for _, r := range d.Relationships {
		if !known[r.RefA.ElementRefID] || !known[r.RefB.ElementRefID] {
			t.Errorf("SPDX: a relationship with something unknown: %+v", r)
		}
	}
}

func checkServer(t *testing.T, out string, sums map[string][sha256.Size]byte) {
	// The schema comes from the registry's own module, of which nothing else is used.
	const version, sum = "github.com/modelcontextprotocol/registry@v1.8.9", "h1:2pYB31q/uSezVbXu+D+Hr3HMimGFspgS1RTMljm1bVI="
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal([]byte(output(t, t.TempDir(), nil, "go", "mod", "download", "-json", version)), &module); err != nil || module.Sum != sum {
		t.Fatalf("%s has the sum %s, want %s (%v)", version, module.Sum, sum, err)
	}
	valid := compile(t, map[string]string{"server.schema.json": filepath.Join(module.Dir, "internal", "validators", "schemas", "2025-12-11.json")}, "server.schema.json")
	var value any
	decode(t, out, "server.json", &value)
	if err := valid.Validate(value); err != nil {
		t.Error(err)
	}
	var entry struct {
		Schema   string `json:"$schema"`
		Packages []struct{ Identifier, FileSha256 string }
	}
	if err := json.Unmarshal(content(t, out, "server.json"), &entry); err != nil {
		t.Fatal(err)
	}
	if want := "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"; entry.Schema != want {
		t.Errorf("$schema is %q, want %q", entry.Schema, want)
	}
	if len(entry.Packages) != len(release.Systems()) {
		t.Errorf("%d packages, want %d", len(entry.Packages), len(release.Systems()))
	}
	for _, p := range entry.Packages {
		address := regexp.MustCompile(`^https://github\.com/toolsrv/toolsrv/releases/download/v[^/]+/([^/]+\.mcpb)$`).FindStringSubmatch(p.Identifier)
		if address == nil {
			t.Errorf("the registry takes no bundle at %s", p.Identifier)
			continue
		}
		if sum, found := sums[address[1]]; !found || hex.EncodeToString(sum[:]) != p.FileSha256 {
			t.Errorf("%s is not the file with the SHA-256 %s", address[1], p.FileSha256)
		}
	}
}

// checkBundles checks each bundle with Anthropic's own tool, and starts the one for this machine as Claude Desktop does.
func checkBundles(t *testing.T, root, out string) {
	_, err := exec.LookPath("npm")
	npm := err == nil && !testing.Short()
	tools := t.TempDir()
	if npm {
		output(t, tools, nil, "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "@anthropic-ai/mcpb@2.1.2")
	}
	for _, s := range release.Systems() {
		t.Run(s.String(), func(t *testing.T) {
			folder := t.TempDir()
			unzip(t, filepath.Join(out, "toolsrv_"+s.String()+".mcpb"), func(name string, mode fs.FileMode, content io.Reader) {
				text, err := io.ReadAll(content)
				if err := errors.Join(err, os.WriteFile(filepath.Join(folder, filepath.Base(name)), text, mode.Perm())); err != nil {
					t.Fatal(err)
				}
			})
			if npm {
				valid := compile(t, map[string]string{"manifest.json": filepath.Join(tools, "node_modules/@anthropic-ai/mcpb/dist/mcpb-manifest-v0.3.schema.json")}, "manifest.json")
				var value any
				decode(t, folder, "manifest.json", &value)
				if err := valid.Validate(value); err != nil {
					t.Error(err)
				}
				output(t, folder, nil, filepath.Join(tools, "node_modules", ".bin", "mcpb"), "validate", "manifest.json")
			}
			if s.OS == runtime.GOOS && s.Arch == runtime.GOARCH {
				startBundle(t, root, folder)
			}
		})
	}
	if !npm {
		t.Skip("no npm, or -short: the manifests were not checked against their schema")
	}
}

func startBundle(t *testing.T, root, folder string) {
	var manifest struct {
		Server struct {
			Type   string `json:"type"`
			Entry  string `json:"entry_point"`
			Config struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
		Settings map[string]struct{ Type string } `json:"user_config"`
	}
	if err := json.Unmarshal(content(t, folder, "manifest.json"), &manifest); err != nil {
		t.Fatal(err)
	}
	server := manifest.Server
	if _, err := os.Stat(filepath.Join(folder, server.Entry)); err != nil || server.Type != "binary" || manifest.Settings["folder"].Type != "directory" {
		t.Fatalf("the manifest has %+v and %+v (%v)", server, manifest.Settings, err)
	}
	tools := t.TempDir()
	tool := content(t, root, "examples/plain-c/plain-c.wasm")
	if err := os.WriteFile(filepath.Join(tools, "plain-c.wasm"), tool, 0o600); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("${__dirname}", folder, "${user_config.folder}", tools)
	for i := range server.Config.Args {
		server.Config.Args[i] = fill.Replace(server.Config.Args[i])
	}
	cmd := exec.CommandContext(t.Context(), fill.Replace(server.Config.Command), server.Config.Args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answers)
	ask := func(message, want string) {
		t.Helper()
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
		for want != "" {
			if !lines.Scan() {
				t.Fatalf("no answer to %s (%v)", message, lines.Err())
			}
			if answer := lines.Text(); strings.Contains(answer, `"id":`) {
				if !strings.Contains(answer, want) {
					t.Errorf("%s to %s, want %s in it", answer, message, want)
				}
				return
			}
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, `"toolsrv"`)
	ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"distance"`)
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// unzip calls take for each file of a zip.
func unzip(t *testing.T, file string, take func(name string, mode fs.FileMode, content io.Reader)) {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		take(f.Name, f.Mode(), r)
	}
}

// modulesOf returns the path and version of each module that is linked into toolsrv, as the go command lists them.
func modulesOf(t *testing.T, root string, s release.System) [][2]string {
	t.Helper()
	environment := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + s.OS, "GOARCH=" + s.Arch}
	list := output(t, root, environment, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/toolsrv")
	lines := slices.Compact(slices.Sorted(strings.Lines(list)))
	var modules [][2]string
	for _, line := range lines {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules = append(modules, [2]string{path, version})
		}
	}
	if len(modules) < 5 {
		t.Fatalf("toolsrv has the modules %v", modules)
	}
	return modules
}

func packageURL(module [2]string) string {
	return "pkg:golang/" + strings.ToLower(module[0]) + "@" + strings.ReplaceAll(module[1], "+", "%2B")
}

// sourcesOfEngines returns the SHA-256 of everything that the engines' recipes download for the build (not for tests), and of the compiler.
func sourcesOfEngines(t *testing.T, root string) []string {
	t.Helper()
	var sources []string
	for _, file := range []string{"sdk/js/engine/sources.txt", "sdk/python/engine/sources.txt", "sdk/python/engine/requirements.txt"} {
		built, _, _ := strings.Cut(string(content(t, root, file)), "# What it is tested with")
		found := regexp.MustCompile(`\b[0-9a-f]{64}\b`).FindAllString(built, -1)
		if len(found) == 0 {
			t.Fatalf("%s names no source", file)
		}
		sources = append(sources, found...)
	}
	zig := regexp.MustCompile(`(?m)^zig_sha256="([0-9a-f]{64}) `).FindSubmatch(content(t, root, "sdk/engines/cache.sh"))
	if zig == nil {
		t.Fatal("sdk/engines/cache.sh has no digest of the compiler")
	}
	return append(sources, string(zig[1]))
}

// cycloneSchema returns the schema that comes with the library of CycloneDX.
func cycloneSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder := filepath.Join(strings.TrimSpace(output(t, ".", nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")), "schema")
	return compile(t, map[string]string{
		"bom-1.6.schema.json":  filepath.Join(folder, "bom-1.6.schema.json"),
		"spdx.schema.json":     filepath.Join(folder, "spdx.schema.json"),
		"jsf-0.82.schema.json": filepath.Join(folder, "jsf-0.82.schemax.json"),
	}, "bom-1.6.schema.json")
}

// compile compiles the schema in files that has this name.
func compile(t *testing.T, files map[string]string, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	for name, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+name, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func content(t *testing.T, folder, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode reads a JSON file, in which members unknown to value are errors.
func decode(t *testing.T, folder, name string, value any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(content(t, folder, name)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func output(t *testing.T, folder string, environment []string, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command(name, arguments...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), environment...)
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, text)
	}
	return string(text)
}
