package registry_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// A client is a program that exchanges modules with registries. In its commands, OURS stands for the artifact that was pushed here, TO for the target
// of a push or a copy, and HOST for the registry.
type client struct {
	program  string
	settings string            // the content of a file settings.toml, if it needs one
	before   string            // commands to run first, if there are any
	pushes   map[string]string // ways to push guest.wasm, by their names
	pulls    []string          // ways to get guest.wasm
	copies   []copying
}

// A copying is a way to copy, and whether the signature is copied, too.
type copying struct {
	lines  []string
	signed bool
}

const wasmConfig = "application/vnd.wasm.config.v0+json"

var clients = map[string]client{
	"oras": {
		program: "oras",
		pushes: map[string]string{
			"a module":           "push --plain-http --config config.json:" + wasmConfig + " TO guest.wasm:application/wasm",
			"without a type":     "push --plain-http TO guest.wasm",
			"type of artifact":   "push --plain-http --artifact-type " + wasmConfig + " TO guest.wasm:application/wasm",
			"a folder":           "push --plain-http TO folder",
			"version 1 of image": "push --plain-http --image-spec v1.0 TO guest.wasm:application/wasm",
		},
		pulls: []string{"pull --plain-http OURS"},
		copies: []copying{
			{[]string{"cp --from-plain-http --to-plain-http OURS TO"}, false},
			{[]string{"cp -r --from-plain-http --to-plain-http OURS TO"}, true},
		},
	},
	"wkg": {
		program:  "wkg",
		settings: "[registry.\"HOST\"]\ndefault = \"oci\"\n[registry.\"HOST\".oci]\nprotocol = \"http\"\n",
		pushes:   map[string]string{"a module": "oci push --insecure HOST TO guest.wasm"},
		pulls: []string{
			"oci pull --insecure HOST --output guest.wasm OURS",
			"get --config settings.toml --registry HOST --output ./guest.wasm acme:ours@1.2.0",
		},
	},
	"oras of Python": {
		program: "../../.venv/oras/bin/python",
		pushes: map[string]string{
			"a module":       "SCRIPT push TO guest.wasm:application/wasm",
			"without a type": "SCRIPT push TO guest.wasm",
			"a folder":       "SCRIPT push TO folder",
		},
		pulls: []string{"SCRIPT pull OURS"},
	},
	"crane": {
		program: "crane",
		pushes: map[string]string{
			"an image":                            "append --oci-empty-base --new_layer module.tar --new_tag TO",
			"a Docker image":                      "append --new_layer module.tar --new_tag TO",
			"a module in place of an image layer": "append --oci-empty-base --new_layer guest.wasm --new_tag TO",
		},
		pulls: []string{"export OURS guest.wasm"},
		copies: []copying{
			{[]string{"copy OURS TO"}, false},
			{[]string{"pull --format=oci OURS layout", "push layout TO"}, false},
		},
	},
	"regctl": {
		program: "regctl",
		before:  "registry set --tls disabled HOST",
		pushes: map[string]string{
			"a module":        "artifact put --artifact-type " + wasmConfig + " --file guest.wasm --file-media-type application/wasm TO",
			"a configuration": "artifact put --config-type " + wasmConfig + " --config-file config.json --file guest.wasm --file-media-type application/wasm TO",
		},
		pulls: []string{"artifact get --output . OURS"},
		copies: []copying{
			{[]string{"image copy OURS TO"}, false},
			{[]string{"image copy --referrers OURS TO"}, true},
		},
	},
	"skopeo": {
		program: "skopeo",
		copies: []copying{
			{[]string{"copy --src-tls-verify=false --dest-tls-verify=false docker://OURS docker://TO"}, false},
			{[]string{"copy --src-tls-verify=false docker://OURS oci:layout:1", "copy --dest-tls-verify=false oci:layout:1 docker://TO"}, false},
		},
	},
}

// TestClients lets other clients push artifacts that are pulled and served here, pull artifacts that are pushed here, and copy these with and without
// their signatures.
func TestClients(t *testing.T) {
	t.Parallel()
	need(t, "openssl")
	folder := t.TempDir()
	run(t, folder, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "acme.key")
	run(t, folder, "openssl", "pkey", "-in", "acme.key", "-pubout", "-out", "acme.pub")
	key, err := signature.ReadKey(filepath.Join(folder, "acme.key"), func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	trust, err := signature.Open([]signature.Signer{{Key: filepath.Join(folder, "acme.pub")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, c.program)
			host := serve(t)
			module := sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), `{"abi":1,"namespace":"shop","tools":[{"name":"echo","description":"Echoes.","parameters":{"type":"object"}}]}`)
			r, err := oci.Open(host, oci.Options{Credentials: testkit.Put(t, t.TempDir(), "none.json", "{}"), Trust: trust})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			ours := oci.Reference{Host: host, Repository: "acme/ours", Tag: "1.2.0"}
			source := []oci.SourceFile{{Name: "guest.py", Content: []byte("import parts")}}
			if _, err := open(t, host).PushWith(t.Context(), ours, "guest.wasm", module, nil, oci.With{Key: key, Source: source}); err != nil {
				t.Fatal(err)
			}
			artifacts := []oci.Reference{ours}
			for way, line := range c.pushes {
				theirs := oci.Reference{Host: host, Repository: "acme/theirs" + hex.EncodeToString([]byte(way)), Tag: "1"}
				c.run(t, material(t, module), theirs, line)
				artifacts = append(artifacts, theirs)
				if got := pull(t, open(t, host), theirs); !bytes.Equal(got, module) {
					t.Errorf("%s: pulled %d bytes of what the client has pushed", way, len(got))
				}
			}
			for _, line := range c.pulls {
				folder := t.TempDir()
				c.run(t, folder, ours, line)
				if got := testkit.Read(t, folder, "guest.wasm"); !bytes.Equal(got, module) {
					t.Errorf("%q: the client has pulled %d bytes", line, len(got))
				}
			}
			for i, way := range c.copies {
				to := oci.Reference{Host: host, Repository: fmt.Sprintf("acme/copy%d", i), Tag: "1"}
				c.run(t, t.TempDir(), to, way.lines...)
				artifacts = append(artifacts, to)
				if got := pull(t, open(t, host), to); !bytes.Equal(got, module) {
					t.Errorf("%q: got %d bytes of the copy", way.lines, len(got))
				}
				if _, err := r.Verify(t.Context(), to); (err == nil) != way.signed || err != nil && !strings.Contains(err.Error(), "it is not signed") {
					t.Errorf("%q: got %v of the copy's signature", way.lines, err)
				}
				if files, _, err := r.Source(t.Context(), to); (err == nil && len(files) == 1) != way.signed {
					t.Errorf("%q: got %q, %v of the copy's source", way.lines, files, err)
				}
			}
			callAll(t, artifacts)
		})
	}
}

// callAll starts a server that takes its tools from artifacts, and calls the tool of each.
func callAll(t *testing.T, artifacts []oci.Reference) {
	t.Helper()
	c := config.Default()
	c.Tools.Directory, c.Tools.CacheDir = "", t.TempDir()
	for i, ref := range artifacts {
		c.Sources = append(c.Sources, config.Source{OCI: ref.Host + "/" + ref.Repository, Tag: ref.Tag, Prefix: fmt.Sprint("a", i)})
	}
	s, err := core.Open(t.Context(), c, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, ref := range artifacts {
		path := fmt.Sprintf("/a%d/shop/echo", i)
		testkit.Until(t, path+" is served", func() bool { _, ok := s.Table.Current().Lookup(path); return ok })
		route, err := invoke.Find(s.Table.Current(), path, wasmtools.Self())
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Invoker.Call(t.Context(), route, &wasmtools.Call{Arguments: []byte(`{"a":1}`), Principal: wasmtools.Self()})
		if err != nil || string(result) != `{"a":1}` {
			t.Errorf("the tool of %s answers %s, %v", ref, result, err)
		}
	}
}

// run runs commands of the client in a folder. In the commands, TO stands for the given artifact.
func (c *client) run(t *testing.T, folder string, to oci.Reference, lines ...string) {
	t.Helper()
	program, err := exec.LookPath(c.program)
	if err == nil {
		program, err = filepath.Abs(program) // the program is run in another folder
	}
	script, scriptErr := filepath.Abs("testdata/oras_client.py")
	if err := errors.Join(err, scriptErr); err != nil {
		t.Fatal(err)
	}
	r := strings.NewReplacer("OURS", to.Host+"/acme/ours:1.2.0", "TO", to.String(), "HOST", to.Host, "SCRIPT", script)
	if c.settings != "" {
		testkit.Put(t, folder, "settings.toml", r.Replace(c.settings))
	}
	if c.before != "" {
		run(t, folder, program, strings.Fields(r.Replace(c.before))...)
	}
	for _, line := range lines {
		run(t, folder, program, strings.Fields(r.Replace(line))...)
	}
}

// material returns a folder with a module in the forms that clients accept.
func material(t *testing.T, module []byte) string {
	t.Helper()
	folder := t.TempDir()
	testkit.Put(t, folder, "guest.wasm", module)
	testkit.Put(t, folder, "config.json", "{}")
	testkit.Put(t, folder, "folder/guest.wasm", module)
	run(t, folder, "tar", "--create", "--file", "module.tar", "guest.wasm")
	return folder
}
