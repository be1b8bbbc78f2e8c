package core

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Counts reports whether anybody is told metrics.
func Counts(c *config.Config) bool {
	return c.Metrics.Enabled || c.OTLP.Endpoint != "" && c.OTLP.Metrics
}

// A Tracer records requests and calls for a collector. internal/otlp says more.
type Tracer interface {
	web.Observer
	invoke.Observer
	// Gather has the collector told these metrics, and a last time where from is nil.
	Gather(from prometheus.Gatherer)
	// Lost returns how many spans the collector was not told.
	Lost() (crowded, unsent uint64)
	// Hurry has Close wait for the collector for a moment only.
	Hurry()
	Close()
}

// checkHeader returns an error if the configuration lacks a secret of a header for the collector.
func (c *Configuration) checkHeader(value string) error {
	_, err := secret.Fill(value, func(name string) (string, error) {
		if !c.Granted.Secrets().Has(name) {
			return "", fmt.Errorf("there is no secret %q: add it to a source in [secrets]", name)
		}
		return "", nil
	})
	return err
}

// checkHeaders returns an error if the configuration lacks a secret of its own headers for the collector.
func (c *Configuration) checkHeaders() error {
	for name, value := range c.OTLP.Headers {
		if err := c.checkHeader(value); err != nil {
			return fmt.Errorf("apply otlp.headers: %s: %w", name, err)
		}
	}
	return nil
}
