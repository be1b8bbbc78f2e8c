// Package compose makes the file for Docker Compose from deploy/compose.
package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/deploy/internal/monitoring"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// unreleased is the version of the image in a checkout.
const unreleased = "${TOOLSRV_VERSION:-latest}"

// Make writes toolsrv_VERSION_compose.yaml, with the image of the same version, and with the contents of the files that it refers to in the checkout.
func Make(_ context.Context, r *release.Release) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "deploy", "compose", "compose.yaml"))
	if err != nil {
		return err
	}
	if bytes.Count(text, []byte(unreleased)) != 1 {
		return errors.New("compose.yaml does not name the image's version as " + unreleased)
	}
	text = bytes.Replace(text, []byte(unreleased), []byte(strings.ReplaceAll(r.Version, "+", "_")), 1)
	for _, name := range monitoring.Files() {
		if text, err = inlined(r.Root, text, name); err != nil {
			return err
		}
	}
	return r.Write(fmt.Sprintf("toolsrv_%s_compose.yaml", r.Version), text)
}

// inlined returns a Compose file in which the name of a file is replaced by its content. Compose takes a single $ for the beginning of a variable, so
// each $ is doubled.
func inlined(root string, text []byte, name string) ([]byte, error) {
	named := []byte("    file: ../helm/toolsrv/files/" + name + "\n")
	if bytes.Count(text, named) != 1 {
		return nil, fmt.Errorf("compose.yaml does not name the file %s", name)
	}
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(monitoring.Folder), name))
	if err != nil {
		return nil, err
	}
	block := []byte("    content: |\n")
	for line := range bytes.Lines(bytes.ReplaceAll(content, []byte("$"), []byte("$$"))) {
		if len(bytes.TrimSpace(line)) > 0 {
			block = append(block, "      "...)
		}
		block = append(block, line...)
	}
	return bytes.Replace(text, named, block, 1), nil
}
