package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A Configuration is what a config.Config decides about calls. It is made while the old one is in force, and published with the generation of the
// route table that is made for it. After that it never changes.
type Configuration struct {
	*config.Config
	Granted *broker.Grants

	follow func() // makes the sources follow it
}

// A Value is published as a whole: a Configuration, or a type that embeds one. A program with doors adds what it decides about requests. A method
// Hurry, if there is one, is used as [invoke.Options.Hurry] is.
type Value interface {
	// Base returns the Configuration.
	Base() *Configuration
}

// Base returns c.
func (c *Configuration) Base() *Configuration { return c }

// CallRates returns the rates for callers that have none of their own.
func (c *Configuration) CallRates() *rates.Settings { return (*rates.Settings)(&c.Rates) }

// Configure makes a Configuration from c, with the present values of secrets. Nothing changes until Publish. An error means that a reload must be
// refused. c must not change from now on.
func (s *Service) Configure(c *config.Config) (*Configuration, error) {
	store, err := s.State.For(c)
	if err != nil {
		return nil, err
	}
	return s.configure(c, store)
}

// Look is Configure for a caller that only wants to know what would change: the result must not be published. It opens no state, so it does not find
// out whether a state that is not open yet could be opened.
func (s *Service) Look(c *config.Config) (*Configuration, error) {
	return s.configure(c, s.State.looked(c))
}

func (s *Service) configure(c *config.Config, store state.Store) (*Configuration, error) {
	grants, err := s.Broker.Make(c, store)
	if err != nil {
		return nil, fmt.Errorf("apply the grants: %w", err)
	}
	next := &Configuration{Config: c, Granted: grants, follow: func() {}}
	if err := next.checkHeaders(); err != nil {
		return nil, err
	}
	if s.sources != nil {
		if next.follow, err = s.sources.prepare(c); err != nil {
			return nil, fmt.Errorf("apply the sources: %w", err)
		}
	}
	return next, nil
}

// Unfilled returns the sorted names of the headers for the collector that are left out because a configuration lacks their secrets. The headers
// themselves are those that were configured at the start.
func (s *Service) Unfilled(c *Configuration) (names []string) {
	if s.Tracer == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.headers)) {
		if c.checkHeader(s.headers[name]) != nil {
			names = append(names, name)
		}
	}
	return names
}

// Publish puts a value in force: policy, limits, grants and all else take effect at one moment. After an error the old value stays.
func (s *Service) Publish(v Value) error {
	if err := s.Catalog.Reconfigure(forCatalog(v)); err != nil {
		return fmt.Errorf("apply the new configuration: %w", err)
	}
	v.Base().follow()
	return nil
}

// Reload puts c in force for a service without a server. With a server, call the server's Reload, since the configuration also says who is admitted.
func (s *Service) Reload(c *config.Config) error {
	if _, own := s.Table.Current().Configuration().(*Configuration); !own {
		return errors.New("apply the new configuration: the service has a server, so call the server's Reload")
	}
	next, err := s.Configure(c)
	if err != nil {
		return err
	}
	return s.Publish(next)
}

// InForce returns the configuration in force, or nil while Open makes the first one.
func (s *Service) InForce() *Configuration {
	if v, ok := s.Table.Current().Configuration().(Value); ok {
		return v.Base()
	}
	return nil
}

// hurry makes doors end slow requests.
func (s *Service) hurry() bool {
	door, ok := s.Table.Current().Configuration().(interface{ Hurry() bool })
	return ok && door.Hurry()
}

// forCatalog returns the catalog's configuration for a value.
func forCatalog(v Value) catalog.Configuration {
	c := v.Base()
	to := catalog.Configuration{Limits: func(path string) limits.Limits { return configured.Limits(c.Config, path) }, Grants: c.Granted, Policy: configured.Policy(c.Config), Value: v}
	if pins := configured.PinsOf(c.Config); pins != nil { // without pins, the catalog need not check each file
		to.Pins = pins
	}
	return to
}
