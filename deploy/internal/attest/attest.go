// Package attest makes the files that say what a release consists of and what it was made from: a statement of its provenance, and checksums of all
// files. Whoever makes the release signs these two.
package attest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
	"github.com/toolsrv/toolsrv/deploy/internal/sbom"
)

const (
	statementFile = "toolsrv.intoto.json"
	checksumsFile = "checksums.txt"
	repository    = "https://github.com/toolsrv/toolsrv"
)

// Make writes toolsrv.intoto.json, which names all files that other parts have written, and checksums.txt, which names those files and
// toolsrv.intoto.json.
func Make(_ context.Context, r *release.Release) error {
	files, err := digests(r.Out)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no file that could be attested: make the other parts, too", r.Out)
	}
	about, err := provenance(r, files)
	if err != nil {
		return err
	}
	if err := r.Write(statementFile, about); err != nil {
		return err
	}
	if files, err = digests(r.Out); err != nil {
		return err
	}
	var list bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&list, "%s  %s\n", f.Digest["sha256"], f.Name)
	}
	return r.Write(checksumsFile, list.Bytes())
}

// digests returns the files below a folder, sorted by name.
func digests(folder string) ([]resource, error) {
	var files []resource
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		files = append(files, resource{Name: filepath.ToSlash(name), Digest: map[string]string{"sha256": hex.EncodeToString(h.Sum(nil))}})
		return nil
	})
	slices.SortFunc(files, func(a, b resource) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

// A statement is an in-toto statement, version 1, with SLSA provenance, version 1, as its predicate.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

// A resource is an in-toto resource descriptor.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType          string             `json:"buildType"`
		ExternalParameters externalParameters `json:"externalParameters"`
		InternalParameters internalParameters `json:"internalParameters"`
		Dependencies       []resource         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type externalParameters struct {
	Repository string `json:"repository"`
	Commit     string `json:"commit"`
	Command    string `json:"command"`
}

type internalParameters struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// provenance returns a statement on what files were made from. It names neither a time nor a machine, so that everybody who makes the release gets
// the same statement: the signature says who made it.
func provenance(r *release.Release, files []resource) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", Subject: files, PredicateType: "https://slsa.dev/provenance/v1"}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = repository + "/blob/main/docs/start.md#verify-what-you-have-downloaded"
	definition.ExternalParameters = externalParameters{repository, r.Commit, "make dist"}
	s.Predicate.RunDetails.Builder.ID = repository + "/tree/main/deploy/cmd/dist"

	own, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("this program does not know what it was built from: build it with Go's modules")
	}
	definition.InternalParameters = internalParameters{r.Version, own.GoVersion}
	used, err := sbom.Modules(own.Deps)
	if err != nil {
		return nil, err
	}
	for _, s := range release.Systems() {
		parts, err := sbom.Parts(r, s)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			used = append(append(used, p), p.Parts...)
		}
	}
	definition.Dependencies = dependencies(r, used)
	content, err := json.MarshalIndent(s, "", "  ")
	return append(content, '\n'), err
}

// dependencies returns the commit, and the packages from registries that a release was made with.
func dependencies(r *release.Release, used []sbom.Part) []resource {
	var list []resource
	for _, p := range used {
		if p.URL == "" {
			continue
		}
		d := resource{URI: p.URL}
		switch {
		case p.SHA256 == "":
		case strings.HasPrefix(p.URL, "pkg:golang/"):
			d.Digest = map[string]string{"dirHash": p.SHA256}
		default:
			d.Digest = map[string]string{"sha256": p.SHA256}
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b resource) int { return strings.Compare(a.URI, b.URI) })
	list = slices.CompactFunc(list, func(a, b resource) bool { return a.URI == b.URI })
	return append([]resource{{URI: "git+" + repository, Digest: map[string]string{"gitCommit": r.Commit}}}, list...)
}
