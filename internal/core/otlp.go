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
		Headers: func() (map[string]string, error) {
			now := s.InForce()
			if now == nil {
				return nil, errors.New("the server begins or ends")
			}
			return now.fill(s, c.OTLP.Headers), nil
		},
		Sample:  c.OTLP.Sample,
		Metrics: c.OTLP.Metrics,
		Timeout: c.OTLP.Timeout,
		Service: c.OTLP.Service,
		Version: version,
		Logger:  s.Logger,
	})
}

// fill returns headers for the collector, with the secrets of the configuration, which is in force. Those whose secrets it lacks are left out: see
// Unfilled.
func (c *Configuration) fill(s *Service, headers map[string]string) map[string]string {
	secrets := secret.NewView(s.secrets, c.Granted.Secrets())
	filled := make(map[string]string, len(headers))
	for name, value := range headers {
		if text, err := secret.Fill(value, secrets.Secret); err == nil {
			filled[name] = text
		}
	}
	return filled
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
