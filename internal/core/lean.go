//go:build lean

package core

import (
	"errors"

	"github.com/toolsrv/toolsrv/internal/config"
)

// newTracer fails.
func newTracer(*Service, *config.Config) (Tracer, error) {
	return nil, errors.New("otlp.endpoint is set, but this program was built with the tag lean, without the libraries of OpenTelemetry: use the one that make build makes, or unset the key")
}
