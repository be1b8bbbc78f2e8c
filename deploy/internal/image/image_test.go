package image_test

import (
	"archive/tar"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/toolsrv/toolsrv/deploy/internal/image"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// given is an archive, such as a release's, to test in place of one made from the checkout.
var given = flag.String("image", "", "test the image in this `archive`")

// made returns the path of the archive to test.
func made(t *testing.T) string {
	t.Helper()
	if *given != "" {
		return *given
	}
	if testing.Short() {
		t.Skip("builds the program for each system")
	}
	out := t.TempDir()
	r, err := release.Open(t.Context(), "../../..", out)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := image.Make(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(out, "toolsrv_"+r.Version+"_oci.tar")
}

// open returns the images of an archive, by their processors.
func open(t *testing.T, archive string) map[string]v1.Image {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := outer.IndexManifest()
	if err != nil || len(list.Manifests) != 1 || !list.Manifests[0].MediaType.IsIndex() {
		t.Fatalf("the archive's index has %d entries (%v), want an index", len(list.Manifests), err)
	}
	index, err := outer.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if list, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, m := range list.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[m.Platform.OS+"/"+m.Platform.Architecture] = img
	}
	return images
}

// mostMiB is the largest size of an image, as it is pulled.
const mostMiB = 20

// TestImage makes the image, looks at its content, and runs it in the ways in which people run containers.
func TestImage(t *testing.T) {
	t.Parallel()
	archive := made(t)
	images := open(t, archive)
	if got := slices.Sorted(maps.Keys(images)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("got images for %q", got)
	}
	for platform, img := range images {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			content(t, platform, img)
		})
	}
	t.Run("others read it", func(t *testing.T) {
		t.Parallel()
		readBySkopeo(t, archive)
	})
	t.Run("by Docker", func(t *testing.T) {
		t.Parallel()
		runByDocker(t, archive)
	})
	t.Run("runs", func(t *testing.T) {
		t.Parallel()
		runs(t, images)
	})
}

// content checks an image's configuration and its files.
func content(t *testing.T, platform string, img v1.Image) {
	t.Helper()
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.OS+"/"+c.Architecture != platform || c.Config.User != "65532:65532" || c.Created.IsZero() {
		t.Errorf("the image is for %s/%s, with user %q and creation time %v", c.OS, c.Architecture, c.Config.User, c.Created)
	}
	for _, label := range []string{"title", "description", "version", "revision", "created", "licenses", "source", "url"} {
		if c.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s", label)
		}
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		size += n
	}
	t.Logf("image_mib %s: %.1f", platform, float64(size)/(1<<20))
	if size > mostMiB<<20 {
		t.Errorf("the image has %d bytes, want %d MiB at most", size, mostMiB)
	}
	files := map[string]*tar.Header{}
	stream := mutate.Extract(img)
	defer stream.Close()
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		files[name] = h
		if !h.ModTime.Equal(c.Created.Time) {
			t.Errorf("%s has the time %v, want the commit's time", name, h.ModTime)
		}
		own := slices.Contains([]string{"var/cache/toolsrv", "var/lib/toolsrv"}, name)
		switch mode := h.FileInfo().Mode(); {
		case own && (h.Uid != image.User || mode.Perm() != 0o700):
			t.Errorf("%s belongs to user %d with mode %v, want the program's user to own it and nobody else to use it", name, h.Uid, mode)
		case !own && h.Uid != 0, mode&(os.ModeSetuid|os.ModeSetgid) != 0, name != "tmp" && mode.Perm()&0o022 != 0, name == "tmp" && mode&os.ModeSticky == 0:
			t.Errorf("%s belongs to user %d with mode %v", name, h.Uid, mode)
		case mode.IsRegular() && mode.Perm()&0o111 != 0 && name != "toolsrv":
			t.Errorf("%s is a program besides ours", name)
		}
	}
	for _, name := range []string{"toolsrv", "tools", "tmp", "etc/passwd", "etc/group", "etc/toolsrv/toolsrv.toml", "etc/ssl/certs/ca-certificates.crt", "usr/share/doc/toolsrv/LICENSE", "usr/share/doc/toolsrv/NOTICE"} {
		if files[name] == nil {
			t.Errorf("no %s", name)
		}
	}
}

// readBySkopeo lets skopeo, a program of others, choose each image of the archive and check all digests.
func readBySkopeo(t *testing.T, archive string) {
	t.Helper()
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skipf("there is no skopeo: %v", err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		to := filepath.Join(t.TempDir(), "copy")
		cmd := exec.CommandContext(t.Context(), "skopeo", "--override-os", "linux", "--override-arch", arch, "--insecure-policy", "copy", "-q", "oci-archive:"+archive, "dir:"+to)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
