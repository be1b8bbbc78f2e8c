package core

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Counts reports whether metrics are sent.
func Counts(c *config.Config) bool {
	return c.Metrics.Enabled || c.OTLP.Endpoint != "" && c.OTLP.Metrics
}

// A Tracer records requests and calls for a collector: see package otlp.
type Tracer interface {
	web.Observer
	invoke.Observer
	// Gather sends these metrics to the collector from now on. If from is nil, it sends them one last time.
	Gather(from prometheus.Gatherer)
	// Lost returns how many spans did not reach the collector.
	Lost() (crowded, unsent uint64)
	// Hurry makes Close wait only a moment for the collector.
	Hurry()
	Close()
}

// checkHeader returns an error if the configuration lacks a secret in a header for the collector.
func (c *Configuration) checkHeader(value string) error {
	_, err := secret.Fill(value, func(name string) (string, error) {
		if !c.Granted.Secrets().Has(name) {
			return "", fmt.Errorf("there is no secret %q: add it to a source in [secrets]", name)
		}
		return "", nil
	})
	return err
}

// checkHeaders returns an error if the configuration lacks a secret in one of its own headers for the collector.
func (c *Configuration) checkHeaders() error {
	for name, value := range c.OTLP.Headers {
		if err := c.checkHeader(value); err != nil {
			return fmt.Errorf("apply otlp.headers: %s: %w", name, err)
		}
	}
	return nil
}
