package compose_test

import (
	"os"
	"path/filepath"
	"regexp"
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

// TestCompose checks the file against Compose's own rules, and the service's properties.
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
		t.Errorf("the container has more privileges than it needs: %+v", s)
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
			t.Errorf("the container may write to %s on the host", v.Source)
		}
	}
	if len(project.Secrets) != 1 || !slices.Contains(s.Command, "/run/secrets/tokens") {
		t.Errorf("secrets %v, command %v", project.Secrets, s.Command)
	}
}

// pinned matches an image with a readable version and a digest.
var pinned = regexp.MustCompile(`^[a-z./]+:v?[0-9]+\.[0-9]+\.[0-9]+@sha256:[0-9a-f]{64}$`)

// TestMonitoring checks Prometheus and Grafana: they start only on request, and have the files that they need.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	project, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := project.GetService("prometheus"); err == nil {
		t.Error("Prometheus starts although nobody has requested it")
	}
	if project, err = project.WithProfiles([]string{"monitoring"}); err != nil {
		t.Fatal(err)
	}
	targets := map[string][]string{
		"prometheus": {"/etc/prometheus/prometheus.yml", "/etc/prometheus/rules.yaml"},
		"grafana":    {"/etc/grafana/provisioning/datasources/toolsrv.yaml", "/etc/grafana/provisioning/dashboards/toolsrv.yaml", "/etc/grafana/dashboards/toolsrv.json"},
	}
	for name, want := range targets {
		s, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range s.Configs {
			got = append(got, c.Target)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the files %q, want %q", name, got, want)
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Privileged || s.MemLimit == 0 || !pinned.MatchString(s.Image) {
			t.Errorf("%s has more privileges than it needs, or its image can be replaced: %+v", name, s)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is open to other machines: %+v", name, port)
			}
		}
	}
}

// TestMake checks that the file of a release names the image of the release.
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
		for config, name := range map[string]string{"rules": "rules.yaml", "dashboard": "dashboard.json"} {
			want, err := os.ReadFile("../../helm/toolsrv/files/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if got := project.Configs[config]; got.File != "" || strings.TrimSpace(got.Content) != strings.TrimSpace(string(want)) {
				t.Errorf("%s has other content than %s: %.200q", config, name, got.Content)
			}
		}
	}
}
