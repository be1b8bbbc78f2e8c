package compose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/toolsrv/toolsrv/deploy/internal/compose"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// load reads a file as `docker compose config` does: with its schema, its rules, and no variable set.
func load(t *testing.T, file string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(nil), cli.WithConsistency(true), cli.WithNormalization(true))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(t.Context())
}

const file = "../../compose/compose.yaml"

// TestCompose holds the file to Compose's own rules, and to what the service must be.
func TestCompose(t *testing.T) {
	t.Parallel()
	project, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := project.GetService("toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("the container may more than it has to: %+v", s)
	}
	if s.MemLimit == 0 || s.PidsLimit == 0 {
		t.Errorf("limits of memory and processes: %d, %d", s.MemLimit, s.PidsLimit)
	}
	if s.StopGracePeriod == nil || s.StopGracePeriod.String() != "45s" {
		t.Errorf("it has %v to stop, want 45s", s.StopGracePeriod)
	}
	if h := s.HealthCheck; h == nil || !slices.Equal(h.Test, []string{"CMD", "/toolsrv", "ready"}) {
		t.Errorf("the health check is %+v", h)
	}
	if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Target != 8000 {
		t.Errorf("ports %+v, want 8000 for this machine alone", s.Ports)
	}
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind && !v.ReadOnly {
			t.Errorf("it may write to %s of the machine", v.Source)
		}
	}
	if len(project.Secrets) != 1 || !slices.Contains(s.Command, "/run/secrets/tokens") {
		t.Errorf("secrets %v, command %v", project.Secrets, s.Command)
	}
}

// TestComposeComments removes the # of the lines that are comments: the file must still be valid.
func TestComposeComments(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	replaced := string(text)
	for from, to := range map[string]string{
		"    # configs:\n    #   - source: toolsrv\n    #     target: /etc/toolsrv/toolsrv.toml\n": "    configs:\n      - source: toolsrv\n        target: /etc/toolsrv/toolsrv.toml\n",
		"# configs:\n#   toolsrv:\n#     file: ./toolsrv.toml\n":                                   "configs:\n  toolsrv:\n    file: ./toolsrv.toml\n",
	} {
		if !strings.Contains(replaced, from) {
			t.Fatalf("no %q", from)
		}
		replaced = strings.Replace(replaced, from, to, 1)
	}
	changed := filepath.Join(t.TempDir(), "compose.yaml")
	if err := os.WriteFile(changed, []byte(replaced), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := load(t, changed)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := project.GetService("toolsrv"); err != nil || len(s.Configs) != 1 || len(project.Configs) != 1 {
		t.Errorf("configs %v, %v (%v)", s.Configs, project.Configs, err)
	}
}

// TestMake makes the file of a release name the image of the release.
func TestMake(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.4-0.20260102150405-abcdefabcdef+dirty": "1.2.4-0.20260102150405-abcdefabcdef_dirty"} {
		r := &release.Release{Root: "../../..", Out: t.TempDir(), Version: version}
		if err := compose.Make(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		project, err := load(t, filepath.Join(r.Out, "toolsrv_"+version+"_compose.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := project.GetService("toolsrv"); err != nil || s.Image != "ghcr.io/toolsrv/toolsrv:"+want {
			t.Errorf("the image is %s (%v), want the version %s", s.Image, err, want)
		}
	}
}
