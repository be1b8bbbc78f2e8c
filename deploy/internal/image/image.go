// Package image makes the OCI image for each processor: a file system with the program alone, without a shell or a C library. It needs no daemon, so
// an image can be made wherever Go is installed, and the same commit gives the same image.
package image

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// Name is the name of the image in its registry.
const Name = "ghcr.io/toolsrv/toolsrv"

// User is the number of the user and the group that the program runs as. Other images without a shell use the same number, so that a cluster's policy
// fits all.
const User = 65532

// Make writes toolsrv_VERSION_oci.tar: an OCI layout with an index that has an image for each processor, and a list of these images for older
// versions of Docker.
func Make(ctx context.Context, r *release.Release) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var listed []dockerImage
	for _, s := range release.Systems() {
		if s.OS != "linux" {
			continue
		}
		img, err := of(r, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		forDocker, err := dockerImageOf(img, r.Version+"-"+s.Arch)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		listed = append(listed, forDocker)
		platform := &v1.Platform{OS: s.OS, Architecture: s.Arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	annotated, ok := mutate.Annotations(index, labels(r)).(v1.ImageIndex)
	if !ok {
		return fmt.Errorf("an index with annotations is a %T", index)
	}
	dir, err := r.Scratch("image")
	if err != nil {
		return err
	}
	// The index is inside another index: with two images in the outer index, whoever imports the archive would have to choose one by hand.
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = path.AppendIndex(annotated, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.Version,
		"io.containerd.image.name":          Name + ":" + r.Version,
	}))
	if err != nil {
		return err
	}
	entries, err := read(dir)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(listed)
	if err != nil {
		return err
	}
	content, err := pack(append(entries, entry{name: "manifest.json", mode: 0o644, content: manifest}), r.Time)
	if err != nil {
		return err
	}
	return r.Write(fmt.Sprintf("toolsrv_%s_oci.tar", r.Version), content)
}

// A dockerImage is an entry of manifest.json. If Docker does not store images in containerd, as before version 29, docker load finds them in this
// file. Such a Docker does not support images for several processors, so the image for each processor has a tag of its own.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func dockerImageOf(img v1.Image, tag string) (d dockerImage, err error) {
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	config, err := img.ConfigName()
	if err != nil {
		return d, err
	}
	layers, err := img.Layers()
	if err != nil {
		return d, err
	}
	d = dockerImage{Config: blob(config), RepoTags: []string{Name + ":" + strings.ReplaceAll(tag, "+", "_")}}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return d, err
		}
		d.Layers = append(d.Layers, blob(digest))
	}
	return d, nil
}

// of returns the image for a system: one layer with all that stays the same from release to release, and one with the program.
func of(r *release.Release, s release.System) (v1.Image, error) {
	program, err := os.ReadFile(r.Program(s))
	if err != nil {
		return nil, err
	}
	base, err := skeleton(r.Root)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range []struct {
		what    string
		entries []entry
	}{
		{"folders, accounts, certificates, toolsrv.toml", base},
		{"the program", []entry{{name: "toolsrv", mode: 0o755, content: program}}},
	} {
		layer, err := layerOf(l.entries, r.Time)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: r.Time}, CreatedBy: "make dist: " + l.what}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: history, MediaType: types.OCILayer}); err != nil {
			return nil, err
		}
	}
	return configure(img, r, s)
}

// configure sets how the program is started.
func configure(img v1.Image, r *release.Release, s release.System) (v1.Image, error) {
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = s.OS, s.Arch, v1.Time{Time: r.Time}
	c.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", User, User),
		Entrypoint:   []string{"/toolsrv"},
		Cmd:          []string{"openapi"}, // reads toolsrv.toml in the working directory
		WorkingDir:   "/etc/toolsrv",
		ExposedPorts: map[string]struct{}{"8000/tcp": {}},
		// So a mounted toolsrv.toml need not say where the cache is.
		Env:        []string{"PATH=/", "HOME=/tmp", "XDG_CACHE_HOME=/var/cache", "STATE_DIRECTORY=/var/lib/toolsrv"},
		StopSignal: "SIGTERM",
		Labels:     labels(r),
	}
	if img, err = mutate.ConfigFile(img, c); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(img, labels(r)).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("an image with annotations is a %T", img)
	}
	return annotated, nil
}

// labels describe the image for people who look at it in a registry.
func labels(r *release.Release) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":       "toolsrv",
		prefix + "description": "Serves WebAssembly tools over REST and MCP",
		prefix + "version":     r.Version,
		prefix + "revision":    r.Commit,
		prefix + "created":     r.Time.Format(time.RFC3339),
		prefix + "licenses":    "Apache-2.0",
		prefix + "source":      "https://github.com/toolsrv/toolsrv",
		prefix + "url":         "https://github.com/toolsrv/toolsrv",
	}
}

//go:embed toolsrv.toml
var configuration []byte

// skeleton returns the files and folders besides the program. The folders that the program writes to belong to its user; it can only read all others.
func skeleton(root string) ([]entry, error) {
	var texts [2][]byte
	for i, name := range []string{"LICENSE", "NOTICE"} {
		var err error
		if texts[i], err = os.ReadFile(filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	return []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\ntoolsrv:x:%d:\n", User)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:/:/sbin/nologin\ntoolsrv:x:%d:%d:toolsrv:/tmp:/sbin/nologin\n", User, User)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		{name: "etc/toolsrv/", mode: 0o755},
		{name: "etc/toolsrv/toolsrv.toml", mode: 0o644, content: configuration},
		{name: "run/", mode: 0o755},
		{name: "run/secrets/", mode: 0o755},
		{name: "tmp/", mode: 0o1777},
		{name: "tools/", mode: 0o755},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/toolsrv/", mode: 0o755},
		{name: "usr/share/doc/toolsrv/LICENSE", mode: 0o644, content: texts[0]},
		{name: "usr/share/doc/toolsrv/NOTICE", mode: 0o644, content: texts[1]},
		{name: "var/", mode: 0o755},
		{name: "var/cache/", mode: 0o755},
		{name: "var/cache/toolsrv/", mode: 0o700, owner: User},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/toolsrv/", mode: 0o700, owner: User},
	}, nil
}

// read returns the files of a folder, in the order of their names.
func read(dir string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		e := entry{name: filepath.ToSlash(name), mode: 0o644}
		if d.IsDir() {
			e.name, e.mode = e.name+"/", 0o755
		} else if e.content, err = os.ReadFile(file); err != nil {
			return err
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}
