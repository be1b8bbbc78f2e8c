// Package monitoring writes the monitoring files of a release: rules for Prometheus, and a dashboard for Grafana.
package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// Folder is where both files are in a checkout. It is inside the chart, since a chart can't use files from elsewhere.
const Folder = "deploy/helm/toolsrv/files"

// Files returns the names of the files.
func Files() []string { return []string{"rules.yaml", "dashboard.json"} }

// Make writes toolsrv_VERSION_rules.yaml and toolsrv_VERSION_dashboard.json.
func Make(_ context.Context, r *release.Release) error {
	for _, name := range Files() {
		content, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(Folder), name))
		if err != nil {
			return err
		}
		if err := r.Write(fmt.Sprintf("toolsrv_%s_%s", r.Version, name), content); err != nil {
			return err
		}
	}
	return nil
}
