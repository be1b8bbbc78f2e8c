package installer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/toolsrv/toolsrv/deploy/internal/installer"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

const (
	version  = "1.2.0-rc.1"
	download = "https://github.com/toolsrv/toolsrv/releases/download/v" + version + "/"
)

// made makes the tested files, for a release with archives, and returns their folder.
func made(t *testing.T) string {
	t.Helper()
	r := &release.Release{Root: "../../..", Out: t.TempDir(), Version: version, Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Systems: release.Systems()}
	for _, s := range r.Systems {
		ending := ".tar.gz"
		if s.OS == "windows" {
			ending = ".zip"
		}
		if err := r.Write("toolsrv_"+s.String()+ending, []byte(s.String())); err != nil {
			t.Fatal(err)
		}
	}
	if err := installer.Make(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.Out
}

// sum is the checksum of the archive for a system.
func sum(system string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(system))) }

func read(t *testing.T, out, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("<no value>")) || !bytes.HasSuffix(text, []byte("\n")) {
		t.Errorf("%s: %s", name, text)
	}
	return text
}

func TestWithoutArchives(t *testing.T) {
	t.Parallel()
	r := &release.Release{Root: "../../..", Out: t.TempDir(), Version: version, Systems: release.Systems()}
	if err := installer.Make(t.Context(), r); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "which has to be made before") {
		t.Errorf("got %v, want an error about a missing archive", err)
	}
}

// homebrew stands in for Homebrew: it knows exactly the words that a formula may use, and prints what a formula says for a system.
const homebrew = `
os, cpu = ARGV[0].split("_")
class Formula
  SAID = {}
  def self.desc(x) = SAID[:desc] = x
  def self.homepage(x) = SAID[:homepage] = x
  def self.version(x) = SAID[:version] = x
  def self.license(x) = SAID[:license] = x
  def self.url(x) = SAID[:url] = x
  def self.sha256(x) = SAID[:sha256] = x
  def self.depends_on(x) = (SAID[:arch] = x.fetch(:arch))
  def self.on_macos = (yield if $os == "darwin")
  def self.on_linux = (yield if $os == "linux")
  def self.on_intel = (yield if $cpu == "amd64")
  def self.on_arm = (yield if $cpu == "arm64")
  def self.test(&block) = (SAID[:test] = block.class)
  Place = Struct.new(:name) do
    def install(*what) = (SAID[name] = what.flatten.map(&:to_s))
  end
  %i[bin man1 bash_completion zsh_completion fish_completion doc].each { |n| define_method(n) { Place.new(n) } }
end
$os, $cpu = os, cpu
load ARGV[1]
Dir.chdir(ARGV[2]) { Toolsrv.new.install }
require "json"
puts JSON.generate(Formula::SAID)
`

// TestHomebrew lets Ruby run the formula for each system.
func TestHomebrew(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ruby"); err != nil {
		t.Skip("there is no ruby: make setup-dist installs it")
	}
	out := made(t)
	read(t, out, "toolsrv.rb")
	unpacked := t.TempDir()
	if err := os.MkdirAll(filepath.Join(unpacked, "man", "man1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unpacked, "man", "man1", "toolsrv.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"darwin_arm64", "linux_amd64", "linux_arm64"} {
		text, err := exec.CommandContext(t.Context(), "ruby", "-W2", "-e", homebrew, system, filepath.Join(out, "toolsrv.rb"), unpacked).CombinedOutput()
		var said map[string]any
		if err != nil || json.Unmarshal(text, &said) != nil {
			t.Fatalf("%v: %s", err, text)
		}
		want := map[string]any{
			"desc": said["desc"], "homepage": "https://github.com/toolsrv/toolsrv", "version": version, "license": "Apache-2.0",
			"url": download + "toolsrv_" + system + ".tar.gz", "sha256": sum(system), "test": "Proc",
			"bin": []any{"toolsrv"}, "man1": []any{"man/man1/toolsrv.1"}, "bash_completion": []any{`{"completions/toolsrv.bash"=>"toolsrv"}`},
			"zsh_completion": []any{"completions/_toolsrv"}, "fish_completion": []any{"completions/toolsrv.fish"}, "doc": []any{"LICENSES", "NOTICE"},
		}
		if system == "darwin_arm64" {
			want["arch"] = "arm64"
		}
		if !reflect.DeepEqual(said, want) {
			t.Errorf("%s: got %v, want %v", system, said, want)
		}
		// The rules of brew audit for descriptions.
		if desc, _ := said["desc"].(string); len(desc) > 80 || strings.HasPrefix(desc, "A ") || strings.HasSuffix(desc, ".") || strings.HasPrefix(strings.ToLower(desc), "toolsrv") {
			t.Errorf("the description is %q", desc)
		}
	}
}

// A scoop manifest, with the fields of its schema: no others are allowed.
type scoop struct {
	Version      string `json:"version"`
	Description  string `json:"description"`
	Homepage     string `json:"homepage"`
	License      string `json:"license"`
	Architecture struct {
		Bits64 struct {
			URL        string `json:"url"`
			Hash       string `json:"hash"`
			ExtractDir string `json:"extract_dir"`
		} `json:"64bit"`
	} `json:"architecture"`
	Bin      string `json:"bin"`
	Checkver struct {
		GitHub string `json:"github"`
	} `json:"checkver"`
	Autoupdate struct {
		Architecture struct {
			Bits64 struct {
				URL string `json:"url"`
			} `json:"64bit"`
		} `json:"architecture"`
		Hash struct {
			URL string `json:"url"`
		} `json:"hash"`
	} `json:"autoupdate"`
}

func TestScoop(t *testing.T) {
	t.Parallel()
	d := json.NewDecoder(bytes.NewReader(read(t, made(t), "toolsrv.json")))
	d.DisallowUnknownFields()
	var m scoop
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if a := m.Architecture.Bits64; m.Version != version || a.URL != download+"toolsrv_windows_amd64.zip" || a.Hash != sum("windows_amd64") || a.ExtractDir != "toolsrv_windows_amd64" || m.Bin != "toolsrv.exe" || m.License != "Apache-2.0" {
		t.Errorf("%+v", m)
	}
	if got := strings.ReplaceAll(m.Autoupdate.Architecture.Bits64.URL, "$version", version); got != m.Architecture.Bits64.URL {
		t.Errorf("an update would come from %s", got)
	}
	if !regexp.MustCompile(`^[\w.\-+]+$`).MatchString(m.Version) || m.Autoupdate.Hash.URL != "$baseurl/checksums.txt" {
		t.Errorf("%+v", m)
	}
}

// The part of winget's schemas, version 1.6.0, that we use.
type (
	winget struct {
		PackageIdentifier, PackageVersion, ManifestType, ManifestVersion string
	}
	wingetVersion struct {
		winget
		DefaultLocale string
	}
	wingetInstaller struct {
		winget
		InstallerType, NestedInstallerType, ReleaseDate string
		NestedInstallerFiles                            []struct{ RelativeFilePath, PortableCommandAlias string }
		Commands                                        []string
		Installers                                      []struct{ Architecture, InstallerUrl, InstallerSha256 string } //nolint:revive // its names
	}
	wingetLocale struct {
		winget
		PackageLocale, Publisher, PackageName, PackageUrl, License, LicenseUrl, ShortDescription, ReleaseNotesUrl, Moniker string //nolint:revive // its names
		Tags                                                                                                               []string
	}
)

func TestWinget(t *testing.T) {
	t.Parallel()
	out := made(t)
	strictly := func(name string, into any, common *winget, kind string) {
		t.Helper()
		text := read(t, out, name)
		if first, _, _ := strings.Cut(string(text), "\n"); first != "# yaml-language-server: $schema=https://aka.ms/winget-manifest."+kind+".1.6.0.schema.json" {
			t.Errorf("%s begins with %s", name, first)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if *common != (winget{"toolsrv.toolsrv", version, kind, "1.6.0"}) {
			t.Errorf("%s: %+v", name, *common)
		}
	}
	var v wingetVersion
	strictly("toolsrv.toolsrv.yaml", &v, &v.winget, "version")
	var l wingetLocale
	strictly("toolsrv.toolsrv.locale.en-US.yaml", &l, &l.winget, "defaultLocale")
	var i wingetInstaller
	strictly("toolsrv.toolsrv.installer.yaml", &i, &i.winget, "installer")
	if v.DefaultLocale != "en-US" || l.PackageLocale != v.DefaultLocale || l.License != "Apache-2.0" || l.Publisher == "" || l.PackageName == "" || len(l.ShortDescription) < 3 || len(l.ShortDescription) > 256 {
		t.Errorf("%+v %+v", v, l)
	}
	if i.InstallerType != "zip" || i.NestedInstallerType != "portable" || i.ReleaseDate != "2026-03-04" || len(i.Installers) != 1 || len(i.NestedInstallerFiles) != 1 {
		t.Fatalf("%+v", i)
	}
	one, nested := i.Installers[0], i.NestedInstallerFiles[0]
	if one.Architecture != "x64" || one.InstallerUrl != download+"toolsrv_windows_amd64.zip" || one.InstallerSha256 != strings.ToUpper(sum("windows_amd64")) {
		t.Errorf("%+v", one)
	}
	if nested.RelativeFilePath != `toolsrv_windows_amd64\toolsrv.exe` || nested.PortableCommandAlias != "toolsrv" {
		t.Errorf("%+v", nested)
	}
}

func TestScriptIsThere(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(script)
	if err != nil || !bytes.Equal(read(t, made(t), "install.sh"), want) {
		t.Error("the release's script differs from the checkout's", err)
	}
}
