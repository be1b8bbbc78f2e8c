// Package compose makes of deploy/compose what a release has for Docker Compose.
package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// unreleased is how a checkout names the image's version.
const unreleased = "${TOOLSRV_VERSION:-latest}"

// Make writes toolsrv_VERSION_compose.yaml, with the image of the same version.
func Make(_ context.Context, r *release.Release) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "deploy", "compose", "compose.yaml"))
	if err != nil {
		return err
	}
	if bytes.Count(text, []byte(unreleased)) != 1 {
		return errors.New("compose.yaml does not name the image's version as " + unreleased)
	}
	text = bytes.Replace(text, []byte(unreleased), []byte(strings.ReplaceAll(r.Version, "+", "_")), 1)
	return r.Write(fmt.Sprintf("toolsrv_%s_compose.yaml", r.Version), text)
}
