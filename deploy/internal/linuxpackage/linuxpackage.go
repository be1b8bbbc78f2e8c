// Package linuxpackage makes the packages of Debian (deb), Fedora (rpm) and Alpine (apk): the program with its manual pages, completions and
// licences, a configuration, a user and a service.
package linuxpackage

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/apk"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"

	"github.com/toolsrv/toolsrv/deploy/internal/archive"
	"github.com/toolsrv/toolsrv/deploy/internal/monitoring"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

const (
	maintainer  = "toolsrv maintainers <maintainers@users.noreply.a-seed-521ae711.example>"
	homepage    = "https://github.com/toolsrv/toolsrv"
	summary     = "server of tools for language-model agents and programs"
	description = "toolsrv serves tools over REST and MCP. A tool is a WebAssembly module with its\n" +
		"JSON Schema inside, or a script in Python, JavaScript or TypeScript. Every call\n" +
		"runs in a sandbox of its own, and reaches only what its operator has granted."
)

// A format is a package format.
type format struct {
	name     string
	packager nfpm.Packager
	version  func(version string) string
	fill     func(*contents, *nfpm.Info)
}

func formats() []format {
	return []format{
		{"deb", deb.Default, debVersion, forDebian},
		{"rpm", rpm.DefaultRPM, rpmVersion, forFedora},
		{"apk", apk.Default, apkVersion, forAlpine},
	}
}

// Make writes toolsrv_SYSTEM.deb, .rpm and .apk for each Linux system.
func Make(ctx context.Context, r *release.Release) error {
	shared, err := archive.Shared(ctx, r)
	if err != nil {
		return err
	}
	for _, s := range r.Systems {
		if s.OS != "linux" {
			continue
		}
		for _, f := range formats() {
			var out bytes.Buffer
			if err := f.write(&out, r, s, shared); err != nil {
				return fmt.Errorf("%s for %s: %w", f.name, s, err)
			}
			if err := r.Write(fmt.Sprintf("toolsrv_%s.%s", s, f.name), out.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f format) write(w io.Writer, r *release.Release, s release.System, shared []archive.File) error {
	folder, err := r.Scratch("package")
	if err != nil {
		return err
	}
	c := &contents{release: r, folder: folder, shared: shared}
	info := &nfpm.Info{
		Name: "toolsrv", Arch: s.Arch, Platform: "linux", Version: f.version(r.Version), VersionSchema: "none", Section: "net", Priority: "optional",
		Maintainer: maintainer, Vendor: "toolsrv", Homepage: homepage, License: "Apache-2.0", Description: summary + "\n" + description,
		DisableGlobbing: true, MTime: r.Time,
	}
	c.directory("/etc/toolsrv")
	c.config("deploy/packages/toolsrv.toml", "/etc/toolsrv/toolsrv.toml")
	c.source(r.Program(s), "/usr/bin/toolsrv", 0o755)
	for _, name := range monitoring.Files() {
		c.copy(path.Join(monitoring.Folder, name), "/usr/share/toolsrv/"+name, 0o644)
	}
	for _, file := range shared {
		switch kind, name := path.Split(file.Name); {
		case kind == "man/man1/":
			c.file("/usr/share/man/man1/"+name+".gz", compressed(file.Content))
		case name == "toolsrv.bash":
			c.file("/usr/share/bash-completion/completions/toolsrv", file.Content)
		case name == "toolsrv.fish":
			c.file("/usr/share/fish/vendor_completions.d/toolsrv.fish", file.Content)
		}
	}
	f.fill(c, info)
	if c.err != nil {
		return c.err
	}
	info.Contents = c.list
	return f.packager.Package(nfpm.WithDefaults(info), w)
}

// contents collects the files of a package. After the first error, it does nothing more.
type contents struct {
	release *release.Release
	folder  string // for generated files
	shared  []archive.File
	list    files.Contents
	err     error
}

func (c *contents) add(kind, source, destination string, mode os.FileMode) {
	c.list = append(c.list, &files.Content{Source: source, Destination: destination, Type: kind,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: c.release.Time}})
}

func (c *contents) directory(destination string) { c.add(files.TypeDir, "", destination, 0o755) }

// source adds a file of this machine.
func (c *contents) source(source, destination string, mode os.FileMode) {
	c.add(files.TypeFile, source, destination, mode)
}

// config adds a configuration file of the checkout, which operators may change after the installation.
func (c *contents) config(name, destination string) {
	c.add(files.TypeConfigNoReplace, c.path(name), destination, 0o644)
}

// copy adds a file of the checkout.
func (c *contents) copy(name, destination string, mode os.FileMode) {
	c.source(c.path(name), destination, mode)
}

// path returns the path of a file of the checkout.
func (c *contents) path(name string) string {
	return filepath.Join(c.release.Root, filepath.FromSlash(name))
}

// file adds a file with a content.
func (c *contents) file(destination string, content []byte) {
	name := filepath.Join(c.folder, strings.ReplaceAll(destination, "/", "_"))
	if err := os.WriteFile(name, content, 0o600); err != nil && c.err == nil {
		c.err = err
	}
	c.source(name, destination, 0o644)
}

// script returns a copy of a file of the checkout that a package manager runs. Its time is the commit's, since apk uses the time of the file.
func (c *contents) script(name string) string {
	content, err := os.ReadFile(c.path("deploy/packages/" + name))
	file := filepath.Join(c.folder, name)
	if err == nil {
		err = errors.Join(os.WriteFile(file, content, 0o600), os.Chtimes(file, c.release.Time, c.release.Time))
	}
	if err != nil && c.err == nil {
		c.err = err
	}
	return file
}

// sharedFile returns one of the files that are in the archives for every system.
func (c *contents) sharedFile(name string) []byte {
	for _, file := range c.shared {
		if file.Name == name {
			return file.Content
		}
	}
	if c.err == nil {
		c.err = fmt.Errorf("there is no %s beside the program", name)
	}
	return nil
}

// licenses adds the licences in the folder that Fedora and Alpine use.
func (c *contents) licenses() {
	for _, name := range []string{"LICENSE", "LICENSES", "NOTICE"} {
		c.file("/usr/share/licenses/toolsrv/"+name, c.sharedFile(name))
	}
}

// forSystemd adds the unit for systemd, and the files that make its user and folders.
func (c *contents) forSystemd() {
	c.copy("deploy/systemd/toolsrv.service", "/usr/lib/systemd/system/toolsrv.service", 0o644)
	c.copy("deploy/systemd/toolsrv.socket", "/usr/lib/systemd/system/toolsrv.socket", 0o644)
	c.copy("deploy/systemd/sysusers.conf", "/usr/lib/sysusers.d/toolsrv.conf", 0o644)
	c.copy("deploy/systemd/tmpfiles.conf", "/usr/lib/tmpfiles.d/toolsrv.conf", 0o644)
}

func forDebian(c *contents, info *nfpm.Info) {
	c.forSystemd()
	c.file("/usr/share/zsh/vendor-completions/_toolsrv", c.sharedFile("completions/_toolsrv"))
	c.file("/usr/share/doc/toolsrv/copyright", copyright(c.release.Time))
	c.file("/usr/share/doc/toolsrv/NOTICE", c.sharedFile("NOTICE"))
	c.file("/usr/share/doc/toolsrv/LICENSES.gz", compressed(c.sharedFile("LICENSES")))
	c.file("/usr/share/doc/toolsrv/changelog.gz", compressed(changelog(info.Version, c.release.Time)))
	c.copy("deploy/packages/lintian-overrides", "/usr/share/lintian/overrides/toolsrv", 0o644)
	info.Depends = []string{"systemd | systemd-standalone-sysusers", "systemd | systemd-standalone-tmpfiles"}
	info.Recommends = []string{"ca-certificates"}
	info.Scripts = nfpm.Scripts{
		PostInstall: c.script("deb.postinst"),
		PreRemove:   c.script("deb.prerm"),
		PostRemove:  c.script("deb.postrm"),
	}
}

func forFedora(c *contents, info *nfpm.Info) {
	c.forSystemd()
	c.file("/usr/share/zsh/site-functions/_toolsrv", c.sharedFile("completions/_toolsrv"))
	c.licenses()
	info.Depends = []string{"systemd"}
	info.Recommends = []string{"ca-certificates"}
	info.Description = description
	// The name of the build machine is private, and would make packages differ.
	info.RPM = nfpm.RPM{Summary: summary, Group: "Unspecified", BuildHost: "localhost", Packager: maintainer}
	info.Scripts = nfpm.Scripts{
		PostInstall: c.script("rpm.post"),
		PreRemove:   c.script("rpm.preun"),
		PostRemove:  c.script("rpm.postun"),
	}
}

func forAlpine(c *contents, info *nfpm.Info) {
	c.copy("deploy/packages/openrc", "/etc/init.d/toolsrv", 0o755)
	c.file("/usr/share/zsh/site-functions/_toolsrv", c.sharedFile("completions/_toolsrv"))
	c.licenses()
	info.Description = summary
	info.Depends = []string{"ca-certificates"}
	info.Scripts = nfpm.Scripts{PreInstall: c.script("apk.pre-install"), PreRemove: c.script("apk.pre-deinstall")}
	info.APK.Scripts.PostUpgrade = c.script("apk.post-upgrade")
}

// compressed returns a content compressed like gzip -9n does.
func compressed(content []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid, so there is no error
	_, _ = z.Write(content)                                 // to memory
	_ = z.Close()
	return out.Bytes()
}

// changelog returns a changelog in Debian's format, which refers to the one list of changes for all systems.
func changelog(version string, at time.Time) []byte {
	return fmt.Appendf(nil, "toolsrv (%s) unstable; urgency=medium\n\n  * New release: see %s/blob/main/CHANGELOG.md\n\n -- %s  %s\n",
		version, homepage, maintainer, at.Format(time.RFC1123Z))
}

// copyright returns the copyright file in Debian's format.
func copyright(at time.Time) []byte {
	return fmt.Appendf(nil, `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: toolsrv
Upstream-Contact: %s
Source: %s
Comment: The program has libraries and interpreters in it. /usr/share/doc/toolsrv/LICENSES.gz has their licences, as toolsrv licenses prints them.

Files: *
Copyright: %d The toolsrv authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems the whole text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
`, maintainer, homepage, at.Year())
}
