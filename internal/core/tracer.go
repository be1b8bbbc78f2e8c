//go:build !lean

package core

import (
	"cmp"
	"errors"
	"runtime/debug"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/otlp"
	"github.com/toolsrv/toolsrv/internal/secret"
)

// newTracer returns the Tracer. Its headers get their secrets from the configuration that is in force when they are sent.
func newTracer(s *Service, c *config.Config) (Tracer, error) {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(info.Main.Version, version)
	}
	t, err := otlp.New(otlp.Options{
		Endpoint: c.OTLP.Endpoint,
		Headers: func() (map[string]string, error) {
			now := s.InForce()
			if now == nil {
				return nil, errors.New("the server is starting or stopping")
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
	if err != nil {
		return nil, err
	}
	return t, nil
}

// fill returns headers for the collector, with the secrets of the configuration in force. A header whose secret is missing is left out: see Unfilled.
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
