// Package broker turns the grants of a configuration into the values that the host functions of each capability use. A use must be within what the
// tool declares that it needs, and within what its operator grants.
package broker

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/capability/granted"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Options are the settings of a Broker. The zero value is usable: then tools can't call others.
type Options struct {
	// Table returns the table with the tools that other tools may call. Invoker calls them.
	Table   func() *wasmtools.RouteTable
	Invoker *invoker.Invoker
	// Secrets is the store of all secrets. The program that passes it in can keep secrets out of its log, and says which Grants are in force. If nil,
	// the broker makes a store, in which the newest Grants count as in force.
	Secrets *secret.Store
	// Connections bounds the connections of tools to services. If nil, there is no bound.
	Connections capability.Room
	// Logger gets a line for each problem outside of calls. Nil discards.
	Logger *slog.Logger
}

// A Broker holds what outlives a configuration: connections and secrets. A process has one Broker. It is safe for concurrent use.
type Broker struct {
	options Options
	kinds   []opened
}

// An opened is a capability that has been opened in this process.
type opened struct {
	capability.Kind
	configure capability.Configure
}

// New returns a Broker for the capabilities of a configuration.
func New(c *config.Config, o Options) *Broker {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Secrets == nil {
		o.Secrets = secret.NewStore(nil)
	}
	b := &Broker{options: o}
	h := capability.Host{Table: o.Table, Connections: o.Connections, Logger: o.Logger}
	if o.Invoker != nil {
		h.Invoker = o.Invoker
	}
	for _, k := range builtin.With(c.Capabilities) {
		b.kinds = append(b.kinds, opened{k, k.Open(h)})
	}
	return b
}

// Make makes the Grants of a configuration, with the present values of secrets. The configuration must not change from now on. Capabilities keep
// their data in store, which may be nil. An error means that nothing has changed and that a reload must be refused. Running calls see no change
// before the Grants are published. From then on, a grant that is in both configurations has the new secrets, and all others keep their old ones.
func (b *Broker) Make(c *config.Config, store state.Store) (*Grants, error) {
	if err := b.verify(c); err != nil {
		return nil, err
	}
	values, warnings, err := b.readSecrets(c)
	if err != nil {
		return nil, err
	}
	g := &Grants{config: c, values: values, warnings: warnings, kinds: make([]granting, len(b.kinds))}
	for i, k := range b.kinds {
		given := make([]capability.Given, 0, len(c.Grants))
		for _, one := range c.Grants {
			given = give(given, &one, k.Name)
		}
		to := capability.Configuration{Given: given, Secrets: (*capability.Secrets)(secret.NewView(b.options.Secrets, values))}
		if k.Keeps && store != nil {
			to.State = (*capability.Store)(state.NewKeep(store, k.Name))
		}
		g.kinds[i] = granting{k.Kind, k.configure(to)}
	}
	return g, nil
}

// give adds what a grant says about a capability.
func give(to []capability.Given, g *config.Grant, name string) []capability.Given {
	if rule := g.Rules[name]; rule != nil {
		to = append(to, capability.Given{Rule: rule, Match: g.Match, Line: g.Line})
	}
	return to
}

// verify reports what can't be applied in the grants of a configuration, such as a missing file of certificates.
func (b *Broker) verify(c *config.Config) error {
	for i := range c.Grants {
		for _, k := range b.kinds {
			rule := c.Grants[i].Rules[k.Name]
			if rule == nil || k.Verify == nil {
				continue
			}
			if err := k.Verify(rule); err != nil {
				return fmt.Errorf("%s: %w", placeOf(&c.Grants[i], i), err)
			}
		}
	}
	return nil
}

// placeOf identifies a grant without quoting it.
func placeOf(g *config.Grant, i int) string {
	if g.Line == 0 {
		return fmt.Sprintf("grant[%d]", i)
	}
	return fmt.Sprintf("grant[%d] (line %d)", i, g.Line)
}

// readSecrets reads the secrets of a configuration, and makes them known to the store. It also returns what is suspicious about them.
func (b *Broker) readSecrets(c *config.Config) (values *secret.Values, warnings []string, err error) {
	values, warnings, err = secret.Read(secret.Sources(c.Secrets))
	if err == nil {
		if warning := b.options.Secrets.Add(values); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	for _, warning := range warnings {
		b.options.Logger.Warn(warning)
	}
	return values, warnings, err
}

// Grants are the grants of one configuration. They are safe for concurrent use.
type Grants struct {
	config   *config.Config
	kinds    []granting
	values   *secret.Values
	warnings []string
}

// A granting is a capability under one configuration.
type granting struct {
	capability.Kind
	grant capability.Decide
}

// Secrets returns the configuration's secrets, for the store that the Broker has.
func (g *Grants) Secrets() *secret.Values { return g.values }

// Warnings returns what is suspicious about the secrets, in sentences that do not quote them. The Broker has already logged these.
func (g *Grants) Warnings() []string { return g.warnings }

// For returns which needs of the tool at a path such as "/weather/now" were granted. A value that allows the same as one from an earlier
// configuration is Equal to that.
func (g *Grants) For(path string, needs wasmtools.Needs) (granted granted.Tool) {
	if len(needs) == 0 {
		return granted
	}
	var matching []*config.Grant
	for i := range g.config.Grants {
		if one := &g.config.Grants[i]; pattern.Match(one.Match, path) {
			matching = append(matching, one)
		}
	}
	known := 0
	for i := range g.kinds {
		k := &g.kinds[i]
		need, ok := needs[k.Name]
		if !ok {
			continue
		}
		known++
		granted.Waits = granted.Waits || k.Waits
		value, missing := k.give(path, need, matching)
		switch value := value.(type) {
		case nil:
		case capability.Settings:
			granted.Settings = value
		default:
			granted.Values = append(granted.Values, hostcall.Grant{Module: k.Module, Value: value})
		}
		granted.Missing = append(granted.Missing, missing...)
	}
	if known < len(needs) {
		granted.Missing = append(granted.Missing, g.unknown(needs)...)
	}
	return granted
}

// Reaches returns what a tool with all its grants reaches by itself, according to the values that its calls get. The tools that it may call may reach
// more.
func (g *Grants) Reaches(path string, needs wasmtools.Needs) (all []capability.Reached) {
	granted := g.For(path, needs)
	if len(granted.Missing) > 0 {
		return nil
	}
	for i := range g.kinds {
		k := &g.kinds[i]
		need, ok := needs[k.Name]
		if !ok {
			continue
		}
		if k.Kind.Reaches == nil {
			words := need.Words
			if words == nil {
				words = []string{string(need.Object)}
			}
			for _, word := range words {
				all = append(all, capability.Reached{Capability: k.Name, Entry: word})
			}
			continue
		}
		for _, one := range granted.Values {
			if one.Module == k.Module {
				all = append(all, k.Kind.Reaches(one.Value)...)
			}
		}
	}
	slices.SortFunc(all, capability.Reached.Compare)
	return slices.Compact(all)
}

// give returns what a tool is granted of one capability.
func (k *granting) give(path string, need wasmtools.Need, matching []*config.Grant) (any, []wasmtools.Missing) {
	if strings.HasPrefix(k.Name, manifest.ForeignNeed) { // the reader of the manifest did not know this capability
		if err := fits(&k.Kind, need); err != nil {
			return nil, []wasmtools.Missing{{Capability: k.Name, Cause: wasmtools.Unusable, Detail: err.Error()}}
		}
	}
	var given []capability.Given
	for _, one := range matching {
		given = give(given, one, k.Name)
	}
	return k.grant(path, need, given)
}

// unknown returns the needs of capabilities that this server does not have.
func (g *Grants) unknown(needs wasmtools.Needs) (missing []wasmtools.Missing) {
names:
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		for i := range g.kinds {
			if g.kinds[i].Name == name {
				continue names
			}
		}
		missing = append(missing, wasmtools.Missing{Capability: name, Cause: wasmtools.NoCapability})
	}
	return missing
}
