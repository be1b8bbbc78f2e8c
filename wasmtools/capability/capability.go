// Package capability turns the grants of a configuration into what the host functions of each capability are given. A use needs
// both: it must be within what the tool declares that it needs, and within what its operator grants.
package capability

import (
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/compose"
	"github.com/toolsrv/toolsrv/wasmtools/capability/egress"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/state"
)

// Options say what a Broker has at hand. The zero value is usable: its tools can call no others.
type Options struct {
	// Table returns the table of the tools that tools may call, and Invoker calls them.
	Table   func() *wasmtools.RouteTable
	Invoker *invoke.Invoker
	// Volatile keeps KV in memory where the configuration names no state directory, instead of granting none.
	Volatile bool
	// Secrets is the store of all secrets. A caller that has it can keep secrets out of its log, and says which Grants are in force. Nil: the
	// broker makes one, for which those that were made last are.
	Secrets *secret.Store
	// Connections bounds how many connections tools have to the services that they ask. Nil: any number.
	Connections egress.Room
	// Logger gets a line for what goes wrong beside the calls. Nil discards.
	Logger *slog.Logger
}

// A Broker holds what outlives a configuration: connections, stored values, secrets. A process has one. It is safe for concurrent
// use.
type Broker struct {
	options     Options
	secrets     *secret.Store
	vault       vault
	tools       compose.Service
	connections *egress.Connections
	injected    egress.Injected
	sending     register[egress.Grant, *egress.Grant]
	visible     register[secret.Grant, *secret.Grant]
}

// Open opens what the grants of a configuration need. Where the configuration has a listener, somebody waits there already, and tools that keep
// nothing are to work: then state that can't be opened is no error, but is lost as if that had been found out later. The caller closes it, after all calls have ended.
func Open(c *config.Config, o Options) (*Broker, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Secrets == nil {
		o.Secrets = secret.NewStore(nil)
	}
	b := &Broker{options: o, secrets: o.Secrets, connections: egress.NewConnections(o.Connections),
		tools: compose.Service{Invoker: o.Invoker, Table: o.Table, Logger: o.Logger}}
	if _, err := b.vault.open(c, o); err != nil {
		return nil, err
	}
	return b, nil
}

// Close closes everything.
func (b *Broker) Close() error { return b.vault.close() }

// StateBroken returns why what tools keep can't be used until the program is started again, or nil.
func (b *Broker) StateBroken() error { return b.vault.broken() }

// CheckState returns an error where the configuration of a process that is to follow this one names another directory for what tools keep, and
// that one can't be used.
func (b *Broker) CheckState(c *config.Config) error { return b.vault.check(c) }

// Grants returns the grants of a configuration, which must not change any more, with the secrets as they are read now. An error is one that a
// reload must refuse: nothing has changed then. Nothing changes for calls that run before the Grants are published: then a grant that
// stands in both configurations has the new secrets, and all others keep those that they have.
func (b *Broker) Grants(c *config.Config) (*Grants, error) {
	if err := checkHTTP(c); err != nil {
		return nil, err
	}
	store, err := b.vault.open(c, b.options)
	if err != nil {
		return nil, err
	}
	values, warnings, err := b.readSecrets(c)
	if err != nil {
		return nil, err
	}
	b.injected.Put(httpRules(c))
	b.sending.forget()
	b.visible.forget()
	return &Grants{broker: b, config: c, store: store, values: values, patterns: patternsOf(c), warnings: warnings}, nil
}

// Grants are the grants of one configuration. They are safe for concurrent use.
type Grants struct {
	broker *Broker
	config *config.Config
	store  state.Store // nil: there is no KV
	values *secret.Values

	patterns map[string]reach.Pattern // of the entries of HTTP
	made     madeSettings
	warnings []string
}

// Secrets returns the configuration's secrets, for the store that the Broker has.
func (g *Grants) Secrets() *secret.Values { return g.values }

// Warnings returns what was found odd about the secrets, in sentences that hold none. The Broker has logged them.
func (g *Grants) Warnings() []string { return g.warnings }

// A part finds out what a tool was granted of one capability. matching are the grants for the tool, in the order of the configuration; a part is
// only asked where the tool declares a need of it. It returns the value for the set of module, or nil, and what is missing, in
// words for people.
type part struct {
	module string
	grant  func(g *Grants, path string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string)
}

// For returns what the tool at a path such as "/weather/now" was granted of its needs: values for the sets of functions, and
// settings, JSON. missing are those that it was not granted, worded for people. A value that allows the same as one for an earlier
// configuration is Equal to it.
func (g *Grants) For(path string, needs wasmtools.Needs) (values []hostabi.Grant, settings []byte, missing []string) {
	if needs.IsZero() {
		return nil, nil, nil
	}
	var matching []config.Grant
	for _, one := range g.config.Grants {
		if pattern.Match(one.Match, path) {
			matching = append(matching, one)
		}
	}
	for _, p := range []part{httpPart(), kvPart(), secretsPart(), toolsPart(), filesPart()} {
		value, lacks := p.grant(g, path, &needs, matching)
		if value != nil {
			values = append(values, hostabi.Grant{Module: p.module, Value: value})
		}
		missing = append(missing, lacks...)
	}
	settings, lacks := g.settings(&needs, matching)
	return values, settings, append(missing, lacks...)
}
