// Package broker turns the grants of a configuration into what the host functions of each capability are given. A use needs both: it must
// be within what the tool declares that it needs, and within what its operator grants.
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

// Options say what a Broker has at hand. The zero value is usable: its tools can call no others.
type Options struct {
	// Table returns the table of the tools that tools may call, and Invoker calls them.
	Table   func() *wasmtools.RouteTable
	Invoker *invoker.Invoker
	// Secrets is the store of all secrets. A caller that has it can keep secrets out of its log, and says which Grants are in force. If nil, the
	// broker makes one, for which those that were made last are.
	Secrets *secret.Store
	// Connections bounds how many connections tools have to the services that they ask. If nil, any number.
	Connections capability.Room
	// Logger gets a line for what goes wrong outside of calls. Nil discards.
	Logger *slog.Logger
}

// A Broker holds what outlives a configuration: connections and secrets. A process has one. It is safe for concurrent use.
type Broker struct {
	options Options
	kinds   []opened
}

// An opened is a capability in this process.
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

// Make makes the grants of a configuration, which must not change from now on, with the secrets as they are read now. Capabilities that keep
// something have it in store, which may be nil. An error is one that a reload must refuse: nothing has changed then. Nothing changes for calls
// that run before the Grants are published: then a grant that stands in both configurations has the new secrets, and all others keep those
// that they have.
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

// give adds what a grant says of a capability.
func give(to []capability.Given, g *config.Grant, name string) []capability.Given {
	if rule := g.Rules[name]; rule != nil {
		to = append(to, capability.Given{Rule: rule, Match: g.Match, Line: g.Line})
	}
	return to
}

// verify reports what can't be applied of the grants of a configuration, such as a file of certificates that does not exist.
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

// placeOf says which grant is meant, without what it says.
func placeOf(g *config.Grant, i int) string {
	if g.Line == 0 {
		return fmt.Sprintf("grant[%d]", i)
	}
	return fmt.Sprintf("grant[%d] (line %d)", i, g.Line)
}

// readSecrets returns the secrets of a configuration, which the store knows from then on, and what is odd about them.
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

// Warnings returns what is odd about the secrets, in sentences without them. The Broker has logged them.
func (g *Grants) Warnings() []string { return g.warnings }

// For returns what the tool at a path such as "/weather/now" was granted of its needs. A value that allows the same as one for an earlier
// configuration is Equal to it.
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

// Reaches returns what a tool that lacks nothing reaches itself, by the values that its calls are given. Tools that it may call reach more.
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
	if strings.HasPrefix(k.Name, manifest.ForeignNeed) { // the reader of the manifest did not know it
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
