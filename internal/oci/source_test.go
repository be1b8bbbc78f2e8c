package oci_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

var script = []oci.SourceFile{{Name: "csv.py", Content: []byte("import parts.rows\n")}, {Name: "node_modules/.pnpm/a@1/node_modules/a/index.js"}, {Name: "parts/rows.py", Content: []byte("")}}

// TestSource pushes a module with its source, and pulls both.
func TestSource(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(testing.TB) *ocitest.Server{"with a list of referrers": ocitest.ServeReferrers, "with a tag instead of a list": ocitest.Serve} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			r, ref := open(t, s.Host, oci.Options{}), reference(t, s.Host, "acme/csv:1.2")
			given := map[string]string{"a": "b"}
			first, err := r.PushWith(t.Context(), ref, "csv.wasm", module, given, oci.With{Source: script})
			if err != nil {
				t.Fatal(err)
			}
			if len(given) != 1 {
				t.Errorf("the annotations that were given are %v now", given)
			}
			again, err := r.PushWith(t.Context(), ref, "csv.wasm", module, given, oci.With{Source: []oci.SourceFile{script[2], script[0], script[1]}})
			if err != nil || again.Manifest != first.Manifest {
				t.Errorf("the same source becomes another artifact: %v, %v", again, err)
			}
			got, a, err := pull(t, r, ref)
			if err != nil || !bytes.Equal(got, module) || a.Digest != digest.FromBytes(module).String() || a.Source() == "" {
				t.Errorf("got %q, %+v, %v", got, a, err)
			}
			files, a, err := r.Source(t.Context(), ref.At(first.Manifest))
			if err != nil || a.Manifest != first.Manifest || !slices.EqualFunc(files, script, sameFile) {
				t.Errorf("got %q, %+v, %v", files, a, err)
			}
			if n, err := r.SourceSize(t.Context(), ref, a); err != nil || n < 1024 {
				t.Errorf("got %d, %v", n, err)
			}
			if _, err := r.Push(t.Context(), reference(t, s.Host, "acme/csv:plain"), "csv.wasm", module, nil); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Source(t.Context(), reference(t, s.Host, "acme/csv:plain")); !errors.Is(err, oci.ErrNoSource) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func sameFile(a, b oci.SourceFile) bool { return a.Name == b.Name && bytes.Equal(a.Content, b.Content) }

// TestSourceSigned checks that a source is returned only if the artifact that names it is signed, and that both are pushed before the tag.
func TestSourceSigned(t *testing.T) {
	t.Parallel()
	s := ocitest.ServeReferrers(t)
	ours, theirs := newPair(t), newPair(t)
	ref := reference(t, s.Host, "acme/csv:1.2")
	var put []string // manifests
	s.Before(func(_ http.ResponseWriter, q *http.Request) bool {
		if at, ok := strings.CutPrefix(q.URL.Path, "/v2/acme/csv/manifests/"); ok && q.Method == http.MethodPut {
			put = append(put, strings.Split(at, ":")[0])
		}
		return false
	})
	if _, err := open(t, s.Host, oci.Options{}).PushWith(t.Context(), ref, "csv.wasm", module, nil, oci.With{Key: ours.Key, Source: script}); err != nil {
		t.Fatal(err)
	}
	if n := slices.Index(put, "1.2"); n < 3 || n != len(put)-1 {
		t.Errorf("got manifests put in the order %v, want the tag 1.2 last, after the manifests of the module, its source and its signature", put)
	}
	for _, c := range []struct {
		by   *signature.Trust
		want string
	}{{ours.trust, ""}, {theirs.trust, "its signature is not valid"}} {
		files, a, err := open(t, s.Host, oci.Options{Trust: c.by}).Source(t.Context(), ref)
		wants(t, err, c.want)
		if c.want == "" && (len(files) != len(script) || a.By.Key == "") || c.want != "" && files != nil {
			t.Errorf("got %q, %+v", files, a)
		}
	}
}

// An entry is an entry of an archive that a test makes.
type entry struct {
	name string
	kind byte
	size int64
}

func sourceArchive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Size: e.size}
		if e.kind != 0 {
			h.Typeflag, h.Linkname = e.kind, "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, e.size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sparse is a short archive with a file of 10 GB that is one large hole.
func sparse(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	holes := map[string]string{"GNUxsparse.major": "0", "GNUxsparse.minor": "1", "GNUxsparse.size": "10000000000", "GNUxsparse.numblocks": "1", "GNUxsparse.map": "0,0"}
	if err := w.WriteHeader(&tar.Header{Name: "csv.py", Typeflag: tar.TypeReg, PAXRecords: holes, Format: tar.FormatPAX}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("GNUx"), []byte("GNU.")) // since the library can't write this format
}

// TestSourceHostile attaches sources that must not be returned.
// Proves: No tool takes another's place
func TestSourceHostile(t *testing.T) {
	t.Parallel()
	good := sourceArchive(t, entry{name: "csv.py", size: 5})
	many := make([]entry, 1001)
	for i := range many {
		many[i] = entry{name: fmt.Sprint(i)}
	}
	of := func(b []byte) string { return digest.FromBytes(b).String() }
	type source struct {
		named    string   // the source named in the manifest; "" means the first attached one
		attached [][]byte // archives
		change   func(*ocispec.Manifest)
		want     string
	}
	cases := map[string]source{
		"good":                               {"", [][]byte{good}, nil, ""},
		"several sources, one of them named": {of(good), [][]byte{sourceArchive(t, entry{name: "a.py"}), good, sourceArchive(t, entry{name: "b.py"})}, nil, ""},
		"a source other than the named one":  {of(good), [][]byte{sourceArchive(t, entry{name: "a.py"})}, nil, "the registry doesn't have the source"},
		"none":                               {of(good), nil, nil, "the registry doesn't have the source"},
		"a source that is not named":         {"-", [][]byte{good}, nil, "no source was pushed with it"},
		"a name that is not a digest":        {"../../etc/passwd", [][]byte{good}, nil, "is not a supported digest"},
		"a digest of another kind":           {"sha512:" + strings.Repeat("a", 128), [][]byte{good}, nil, "is not a supported digest"},
		"two layers":                         {"", [][]byte{good}, func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }, "doesn't have the source"},
		"of 10 GB":                           {"", [][]byte{good}, func(m *ocispec.Manifest) { m.Layers[0].Size = 10e9 }, "its source has 10000000000 bytes; the limit is"},
		"a negative size":                    {"", [][]byte{good}, func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }, "its source has -1 bytes"},
		"a wrong size":                       {"", [][]byte{good}, func(m *ocispec.Manifest) { m.Layers[0].Size = 7 }, "its source: "},
	}
	for name, b := range map[string][]byte{
		"its source has more than 1000 files":        sourceArchive(t, many...),
		"its source has more than 16777216 bytes":    sourceArchive(t, entry{name: "a", size: 16<<20 - 1}, entry{name: "b", size: 2}),
		"its source has more than 16777216 bytes: a": sparse(t),
		"its source has no files":                    sourceArchive(t),
		"its source is a damaged archive":            []byte(strings.Repeat("x", 1024)),
		"its source is a damaged archive: short":     good[:514],
		`its source has two files "a"`:               sourceArchive(t, entry{name: "a"}, entry{name: "a"}),
		`"link", which is not a file`:                sourceArchive(t, entry{name: "link", kind: tar.TypeSymlink}),
		`"hard", which is not a file`:                sourceArchive(t, entry{name: "hard", kind: tar.TypeLink}),
		`"device", which is not a file`:              sourceArchive(t, entry{name: "device", kind: tar.TypeChar}),
		`"folder/", which is not a file`:             sourceArchive(t, entry{name: "folder/", kind: tar.TypeDir}),
		`its source has two files "A"`:               sourceArchive(t, entry{name: "a"}, entry{name: "A"}),
		`"a" as a file and as a folder`:              sourceArchive(t, entry{name: "a"}, entry{name: "a/b"}),
		`two files "a": a folder`:                    sourceArchive(t, entry{name: "a/b"}, entry{name: "a"}),
	} {
		want, _, _ := strings.Cut(name, ": ")
		cases[name] = source{"", [][]byte{b}, nil, want}
	}
	for _, path := range []string{"../../x", "/etc/x", "a/../../x", "a//x", "./x", "..", `..\x`, "C:x", "a\x1b[31m", "a\u009b31m", "a\u202eyp.py", strings.Repeat("a/", 130) + "x"} {
		cases[path] = source{"", [][]byte{sourceArchive(t, entry{name: path})}, nil, "which is not a path inside a folder"}
	}
	for _, path := range []string{".git/config", "lib/.GIT/config", ".git", ".envrc", ".hg/hgrc", "node_modules/.git/config", "HEAD", "lib/head/x"} {
		cases[path] = source{"", [][]byte{sourceArchive(t, entry{name: path})}, nil, "which is hidden, or git would obey it"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ocitest.ServeReferrers(t)
			named := c.named
			if named == "" {
				named = of(c.attached[0])
			}
			top := put(t, s, "acme/csv", "1.2", func(m *ocispec.Manifest) {
				if named != "-" {
					m.Annotations = map[string]string{"io.github.toolsrv.source": named}
				}
			}, layer{"application/wasm", module})
			for i, b := range c.attached {
				put(t, s, "acme/csv", fmt.Sprint("source", i), func(m *ocispec.Manifest) {
					m.ArtifactType, m.Config.MediaType = "application/vnd.toolsrv.source.v1", ocispec.MediaTypeEmptyJSON
					m.Subject = &ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(top), Size: 1}
					if c.change != nil {
						c.change(m)
					}
				}, layer{"application/vnd.toolsrv.source.v1.tar", b})
			}
			r, ref := open(t, s.Host, oci.Options{}), reference(t, s.Host, "acme/csv:1.2")
			files, _, err := r.Source(t.Context(), ref)
			wants(t, err, c.want)
			if c.want == "" && (len(files) != 1 || files[0].Name != "csv.py" || len(files[0].Content) != 5) || c.want != "" && files != nil {
				t.Errorf("got %q", files)
			}
			if err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the error has control characters: %q", err)
			}
			if got, _, err := pull(t, r, ref); err != nil || !bytes.Equal(got, module) {
				t.Errorf("the module: got %q, %v", got, err) // a source can't harm it
			}
		})
	}
}
