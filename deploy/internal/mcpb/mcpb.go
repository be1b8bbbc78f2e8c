// Package mcpb makes the files from which MCP clients and registries install toolsrv: a bundle for Claude Desktop for each system (.mcpb), and an
// entry for the MCP registry, which refers to the bundles (server.json).
package mcpb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/deploy/internal/archive"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

const (
	repository  = "https://github.com/toolsrv/toolsrv"
	description = "Your own tools in Python, JavaScript, Go or Rust, each call in a sandbox of its own"
)

// Make writes toolsrv_SYSTEM.mcpb for each system, and server.json.
func Make(_ context.Context, r *release.Release) error {
	entry := server{
		Schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		Name:   "io.github.toolsrv/toolsrv", Title: "toolsrv", Description: description, Version: r.Version,
		Website: repository, Repository: source{repository, "github"},
	}
	for _, s := range release.Systems() {
		content, err := bundle(r, s)
		if err != nil {
			return err
		}
		name := "toolsrv_" + s.String() + ".mcpb"
		if err := r.Write(name, content); err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		entry.Packages = append(entry.Packages, bundled{
			Type: "mcpb", Identifier: repository + "/releases/download/v" + r.Version + "/" + name, Version: r.Version,
			SHA256: hex.EncodeToString(sum[:]), Transport: transport{"stdio"},
		})
	}
	content, err := json.MarshalIndent(entry, "", "  ")
	if err != nil {
		return err
	}
	return r.Write("server.json", append(content, '\n'))
}

// bundle returns the zip that Claude Desktop unpacks: the manifest, the program, and the licences.
func bundle(r *release.Release, s release.System) ([]byte, error) {
	text, err := json.MarshalIndent(manifestFor(r.Version, s), "", "  ")
	if err != nil {
		return nil, err
	}
	files := []archive.File{{Name: "manifest.json", Content: append(text, '\n'), Mode: 0o644}}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		content, err := os.ReadFile(filepath.Join(r.Root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, archive.File{Name: name, Content: content, Mode: 0o644})
	}
	program, err := os.ReadFile(r.Program(s))
	if err != nil {
		return nil, err
	}
	return archive.Zip(append(files, archive.File{Name: s.Binary(), Content: program, Mode: 0o755}), r.Time)
}

// A manifest is the manifest of a bundle, version 0.3.
type manifest struct {
	Version       string             `json:"manifest_version"`
	Name          string             `json:"name"`
	Title         string             `json:"display_name"`
	Release       string             `json:"version"`
	Description   string             `json:"description"`
	Long          string             `json:"long_description"`
	Author        author             `json:"author"`
	Repository    git                `json:"repository"`
	Documentation string             `json:"documentation"`
	Support       string             `json:"support"`
	Server        binary             `json:"server"`
	Generated     bool               `json:"tools_generated"` // the tools depend on what is in the folder
	Keywords      []string           `json:"keywords"`
	License       string             `json:"license"`
	Compatibility compatibility      `json:"compatibility"`
	Settings      map[string]setting `json:"user_config"`
}

type author struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type git struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type binary struct {
	Type  string  `json:"type"`
	Entry string  `json:"entry_point"`
	Start command `json:"mcp_config"`
}

type command struct {
	Command   string   `json:"command"`
	Arguments []string `json:"args"`
}

type compatibility struct {
	Platforms []string `json:"platforms"`
}

type setting struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

func manifestFor(version string, s release.System) manifest {
	platform := s.OS
	if platform == "windows" {
		platform = "win32" // as Node.js says
	}
	return manifest{
		Version: "0.3", Name: "toolsrv", Title: "toolsrv", Release: version, Description: description,
		Long: "Serves the tools in a folder: .wasm files, and scripts in Python, JavaScript and TypeScript. A file that you add or change there is served at once. " +
			"A tool runs in a sandbox, without files, network or secrets, until you grant it some.",
		Author: author{"The toolsrv authors", repository}, Repository: git{"git", repository + ".git"},
		Documentation: repository + "/blob/main/docs/start.md", Support: repository + "/issues",
		Server: binary{"binary", s.Binary(), command{"${__dirname}/" + s.Binary(), []string{"mcp", "${user_config.folder}"}}}, Generated: true,
		Keywords: []string{"tools", "sandbox", "wasm", "python", "javascript"}, License: "Apache-2.0", Compatibility: compatibility{[]string{platform}},
		Settings: map[string]setting{"folder": {"directory", "Folder of tools", "Its .wasm files and scripts in Python, JavaScript and TypeScript are the tools.", true}},
	}
}

// A server is an entry of the MCP registry.
type server struct {
	Schema      string    `json:"$schema"`
	Name        string    `json:"name"`
	Title       string    `json:"title"`
	Description string    `json:"description"` // at most 100 characters
	Website     string    `json:"websiteUrl"`
	Repository  source    `json:"repository"`
	Version     string    `json:"version"`
	Packages    []bundled `json:"packages"`
}

type source struct {
	URL    string `json:"url"`
	Source string `json:"source"`
}

type bundled struct {
	Type       string    `json:"registryType"`
	Identifier string    `json:"identifier"`
	Version    string    `json:"version"`
	SHA256     string    `json:"fileSha256"`
	Transport  transport `json:"transport"`
}

type transport struct {
	Type string `json:"type"`
}
