// Package chart makes the files for Kubernetes from deploy/helm and deploy/kubernetes: the chart, and the same objects as plain manifests.
package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// unreleased is the version of the chart and of its image in a checkout.
const unreleased = "0.0.0"

// Make writes toolsrv_VERSION_helm.tgz and toolsrv_VERSION_kubernetes.yaml. It doesn't use the name that Helm itself would give the chart, because
// npm's tarball has that name.
func Make(_ context.Context, r *release.Release) error {
	chart, err := pack(filepath.Join(r.Root, "deploy", "helm", "toolsrv"), r.Version, r.Time)
	if err != nil {
		return err
	}
	if err := r.Write(fmt.Sprintf("toolsrv_%s_helm.tgz", r.Version), chart); err != nil {
		return err
	}
	manifests, err := os.ReadFile(filepath.Join(r.Root, "deploy", "kubernetes", "toolsrv.yaml"))
	if err != nil {
		return err
	}
	return r.Write(fmt.Sprintf("toolsrv_%s_kubernetes.yaml", r.Version), stamp(manifests, r.Version))
}

// stamp replaces the checkout's version by the release's everywhere. The tag of an image can't contain a +.
func stamp(manifests []byte, version string) []byte {
	tag := strings.ReplaceAll(version, "+", "_")
	text := strings.ReplaceAll(string(manifests), "toolsrv:"+unreleased+"\n", "toolsrv:"+tag+"\n")
	return []byte(strings.ReplaceAll(text, `version: "`+unreleased+`"`, `version: "`+tag+`"`))
}

// pack returns the chart in a folder as an archive, with a version.
func pack(folder, version string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(folder), file)
		if err != nil {
			return err
		}
		if d.Name() == "Chart.yaml" {
			if content, err = versioned(content, version); err != nil {
				return err
			}
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err = t.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// versioned returns a Chart.yaml with a version for the chart and its program.
func versioned(text []byte, version string) ([]byte, error) {
	lines := strings.Split(string(text), "\n")
	found := 0
	var kept []string
	for _, line := range lines {
		switch key, _, _ := strings.Cut(line, ":"); key {
		case "version", "appVersion":
			line = fmt.Sprintf("%s: %q", key, version)
			found++
		}
		if !strings.HasPrefix(line, "#") { // a comment about the checkout's version
			kept = append(kept, line)
		}
	}
	if found != 2 {
		return nil, fmt.Errorf("the chart has %d lines with version and appVersion, want 2", found)
	}
	return []byte(strings.Join(kept, "\n")), nil
}
