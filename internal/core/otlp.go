package core

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/toolsrv/toolsrv/internal/otlp"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// Counts reports whether anybody is told metrics.
func Counts(c *config.Config) bool {
	return c.Metrics.Enabled || c.OTLP.Endpoint != "" && c.OTLP.Metrics
}

// newTracer returns what records requests and calls. Its headers have the secrets of the configuration that is in force when they are sent.
func newTracer(s *Service, c *config.Config) (*otlp.Tracer, error) {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(info.Main.Version, version)
	}
	return otlp.New(otlp.Options{
		Endpoint: c.OTLP.Endpoint,
		Headers:  c.OTLP.Headers,
		Fill: func(value string) (string, error) {
			now := s.InForce()
			if now == nil {
				return "", errors.New("the server begins or ends")
			}
			return now.fill(s, value)
		},
		Sample:  c.OTLP.Sample,
		Metrics: c.OTLP.Metrics,
		Timeout: c.OTLP.Timeout,
		Service: c.OTLP.Service,
		Version: version,
		Logger:  s.Logger,
	})
}

// fill returns a header for the collector, with the secrets of the configuration, which is in force.
func (c *Configuration) fill(s *Service, value string) (string, error) {
	return secret.Fill(value, secret.NewView(s.secrets, c.Granted.Secrets()).Secret)
}

// checkHeaders returns an error if the configuration lacks a secret of a header for the collector.
func (c *Configuration) checkHeaders() error { return c.checkThese(c.OTLP.Headers) }

func (c *Configuration) checkThese(headers map[string]string) error {
	has := func(name string) (string, error) {
		if !c.Granted.Secrets().Has(name) {
			return "", fmt.Errorf("there is no secret %q: add it to a source in [secrets]", name)
		}
		return "", nil
	}
	for name, value := range headers {
		if _, err := secret.Fill(value, has); err != nil {
			return fmt.Errorf("apply otlp.headers: %s: %w", name, err)
		}
	}
	return nil
}
