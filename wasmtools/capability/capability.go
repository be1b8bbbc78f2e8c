// Package capability says what a capability is: something outside its sandbox that a tool reaches through functions of the host. A tool
// reaches it if its manifest declares the need and its operator grants it, and only as far as both say.
//
// Each capability is one [Kind], a value in a package of its own. Package builtin lists a server's capabilities, and a program that
// embeds it adds its own; see docs/embedding.md. Package broker turns the grants of a configuration into what the functions are given.
package capability

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// A Kind is one capability. Name, Module, New and Open are required.
type Kind struct {
	// Name is the name with which manifests declare that they need it. The name of a program's own capability
	// begins with "x-".
	Name string
	// Module is the import module whose functions get the tool's grant.
	Module string
	// Set has the functions of Module. If it is nil, Module's functions are among those that every tool has.
	Set *hostabi.Set
	// Waits is whether a tool that needs it waits rather than computes. Then more of the tool's calls run at a
	// time.
	Waits bool
	// Keeps is whether it keeps something in the state of the process.
	Keeps bool
	// A need in a manifest is a list or an object. Word checks an entry of a list. Object checks an object, which all tools of the module
	// share. If both are nil, a need is just the value true.
	Word   func(string) error
	Object func(json.RawMessage) error
	// New returns the rule of a grant that says nothing yet.
	New func() Rule
	// Misfits reports what in a rule does not fit together, with the key to change. It may be nil.
	Misfits func(r Rule, report func(key string, err error))
	// Verify returns an error if a rule can't be applied, for example because it names a missing file. A reload is then refused. It may be
	// nil.
	Verify func(r Rule) error
	// Review reports findings about a rule. Only a capability of an embedding program may leave it nil.
	Review func(v *Review, r Rule)
	// Suggest returns the lines of TOML that grant a need, with values to be replaced where only an operator knows them. Only a
	// capability of an embedding program may leave it nil.
	Suggest func(n wasmtools.Need) string
	// Reaches takes a value that Decide returned, other than nil, and returns what it lets a tool reach, always in the same order. So
	// whoever reviews a configuration sees what is enforced. If Reaches is nil, a tool reaches what it declares that it needs.
	Reaches func(value any) []Reached
	// Open is called once in a process.
	Open func(h Host) Configure
}

// A Rule is what one grant of a configuration says about one capability: a pointer to a type of the kind's own. Once published, it must
// not change.
type Rule interface {
	// Keys returns the readers of the rule's keys in [[grant]]. The readers fill the rule in. Paths are relative to directory. No two kinds
	// have a key in common.
	Keys(directory string) key.Table
	// Shown returns what a log may show of each key, with the same keys in the same order for each rule of the kind.
	Shown() []key.Shown
}

// Rules are the rules of one grant, by the names of the kinds. A kind that the grant does not mention has none.
type Rules map[string]Rule

// A Host is what capabilities can use for as long as the process runs.
type Host struct {
	// Table returns the table of the tools that tools may call, and Invoker calls them. Invoker may be nil: then tools can call no tools.
	Table   func() *wasmtools.RouteTable
	Invoker invoke.Invoker
	// Connections bounds how many connections tools have to services. If it is nil, they may have any number.
	Connections Room
	// Logger gets a line for what goes wrong outside of calls.
	Logger *slog.Logger
}

// A Room counts something that is limited. It is safe for concurrent use.
type Room interface {
	// Take counts one, and reports false if there is no room for it.
	Take() bool
	// Give counts one less.
	Give()
}

// A Given is the rule of a grant, and its place.
type Given struct {
	Rule Rule
	// Match is the grant's pattern, and Line where it begins in its file, or 0.
	Match string
	Line  int
}

// A Configuration holds the grants that are about to be in force.
type Configuration struct {
	// Given are all rules of the kind, in the order of the grants.
	Given []Given
	// Secrets are all secrets of the configuration.
	Secrets *Secrets
	// State is where a kind that Keeps something stores it. If it is nil, there is no such place.
	State *Store
}

// Configure applies a configuration, whose rules have been verified. Nothing may change for calls that run under the previous one.
type Configure func(c Configuration) Decide

// Decide returns what the tool at a path such as "/weather/now" is granted for its need: a value for the functions, or nil, and what it
// lacks. matching are the rules for the tool, in order. It is safe for concurrent use. A value has a type of the kind's own, or is
// [Settings], and is safe for concurrent use. Values that allow the same must be equal: by a method Equal(any) bool, by ==, or by
// reflect.DeepEqual if they can't be compared.
type Decide func(path string, n wasmtools.Need, matching []Given) (value any, missing []wasmtools.Missing)

// Reached is something that a tool reaches outside its sandbox.
type Reached struct {
	// Capability is the name of the kind, and Entry what is reached, such as "https://api.example.com/v2".
	Capability string `json:"capability" description:"The capability, such as http."`
	Entry      string `json:"entry" description:"What is reached, such as a URL or the name of a secret."`
	// Detail says more about it, such as the directory behind a name, or is empty.
	Detail string `json:"detail,omitempty" description:"More about it, such as the directory behind a name."`
	// Own is whether each caller reaches its own, such as a secret. A caller without a lasting name then reaches nothing.
	Own bool `json:"own,omitempty" description:"Whether it is the caller's own, which no other caller can reach."`
}

// Compare orders by capability, entry and detail, and returns 0 if all three are equal.
func (r Reached) Compare(other Reached) int {
	return cmp.Or(strings.Compare(r.Capability, other.Capability), strings.Compare(r.Entry, other.Entry), strings.Compare(r.Detail, other.Detail))
}

// Settings are JSON that functions read with [hostcall.Call.Settings], also while the tool starts. Only one kind has such values.
type Settings json.RawMessage

// Principal returns the principal on whose behalf a call's tool runs, or nil while the tool starts.
func Principal(c *hostabi.Call) *wasmtools.Principal {
	if of, ok := (*hostcall.Call)(c).Principal().(interface{ Who() *wasmtools.Principal }); ok {
		return of.Who()
	}
	return nil
}

// A Review examines one kind's rule in one grant.
type Review struct {
	// Needs are what the tools that the grant matches need from the kind.
	Needs []wasmtools.Need
	// All are what all tools need from it.
	All []wasmtools.Need
	// State is whether there is a place to keep things.
	State bool
	// Matches is whether the grant matches any tool.
	Matches bool
	// Nameless is whether there are tokens of auth.tokens. Their callers can have nothing of their own, since they have no lasting name.
	Nameless bool
	// Report is called with each finding. The reviewer fills in Line and Capability.
	Report func(f Finding)

	entry string
}

// A Finding is something wrong or dangerous in a configuration's grants.
type Finding struct {
	// Key is the place, such as "grant[0].http[1]". A Review gives only the part after the grant.
	Key string `json:"key"`
	// Line is the line of the configuration file where the grant begins, or 0.
	Line int `json:"line,omitempty"`
	// Message says what is wrong there, and what to do.
	Message string `json:"message"`
	// Warning says that nothing is wrong, but that very much is granted.
	Warning bool `json:"warning"`
	// Capability is the name of the capability that the finding is about, and Entry the entry of a need. Either may be empty.
	Capability string `json:"-"`
	Entry      string `json:"-"`
}

// Of returns a review of the same rule, whose findings are about an entry of what tools need.
func (v *Review) Of(entry string) *Review {
	of := *v
	of.entry = entry
	return &of
}

// Wrong reports what is wrong with a key.
func (v *Review) Wrong(key, format string, args ...any) {
	v.Report(Finding{Key: key, Entry: v.entry, Message: fmt.Sprintf(format, args...)})
}

// Warn reports what is dangerous about a key.
func (v *Review) Warn(key, format string, args ...any) {
	v.Report(Finding{Key: key, Entry: v.entry, Message: fmt.Sprintf(format, args...), Warning: true})
}

// OfNobody warns of a key that gives each caller something of its own, if some callers can have nothing of their own.
func (v *Review) OfNobody(key string) {
	if v.Nameless {
		v.Warn(key, "callers with a token from auth.tokens or its file can have nothing of their own, because these tokens have no names: declare them as [[auth.token]]")
	}
}

// Unneeded reports an entry of the grant that no tool needs. The report names the entry's place, since the entry itself may be a secret
// that somebody has put there by mistake. what says more about it.
func (v *Review) Unneeded(key, what string) {
	if v.Matches {
		v.Wrong(key, "%s is granted, but none of the tools that the grant matches needs it: remove it", what)
	}
}
