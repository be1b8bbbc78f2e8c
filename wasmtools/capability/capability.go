// Package capability says what a capability is: something outside of its sandbox that a tool reaches through functions of the host. A tool
// reaches it where its manifest declares that it needs it and its operator grants it, and no further than both say.
//
// Each is one [Kind], a value, in a package of its own. Package builtin lists a server's capabilities, and a program that embeds it adds
// its own; see docs/embedding.md. Package broker turns the grants of a configuration into what the functions are given.
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
	// Name is the name by which manifests need it. One that a program brings along begins with "x-".
	Name string
	// Module is the import module whose functions are given what a tool was granted.
	Module string
	// Set has the functions of Module. If nil, they are among those that every tool has.
	Set *hostabi.Set
	// Waits is whether a tool that needs it waits rather than computes, so that more of its calls run at a time.
	Waits bool
	// Keeps is whether it keeps something in the state of the process.
	Keeps bool
	// A need in a manifest is a list or an object. Word checks an entry of a list. Object checks an object, which all tools of the module
	// share. Where both are nil, the need is true.
	Word   func(string) error
	Object func(json.RawMessage) error
	// New returns the rule of a grant that says nothing yet.
	New func() Rule
	// Misfits reports what in a rule does not fit together, with the key that is to be changed. It may be nil.
	Misfits func(r Rule, report func(key string, err error))
	// Verify returns an error if a rule can't be applied, for example because it names a missing file. A reload is then refused. It may be
	// nil.
	Verify func(r Rule) error
	// Review reports what is odd about a rule. Only a capability of an embedding program may leave it nil.
	Review func(v *Review, r Rule)
	// Suggest returns the lines of TOML that grant a need, with values to be replaced where only an operator knows them. Only a
	// capability of an embedding program may leave it nil.
	Suggest func(n wasmtools.Need) string
	// Reaches returns what a value of Decide, which is not nil, lets a tool reach, in an order that does not change. So whoever reviews a
	// configuration sees what is enforced. If nil, what the tool declares that it needs.
	Reaches func(value any) []Reached
	// Open is called once in a process.
	Open func(h Host) Configure
}

// A Rule is what one grant of a configuration says of one capability: a pointer to a type of the kind's own. Once published, it must not
// change it any more.
type Rule interface {
	// Keys returns the readers of its keys in [[grant]], which fill it in. Paths are relative to directory. No two kinds have a key in common.
	Keys(directory string) key.Table
	// Shown returns what a log may tell of each key, of the same keys in the same order for each rule of the kind.
	Shown() []key.Shown
}

// Rules are the rules of one grant, by the names of the kinds. A kind that the grant does not mention has none.
type Rules map[string]Rule

// A Host is what capabilities have at hand for as long as the process runs.
type Host struct {
	// Table returns the table of the tools that tools may call, and Invoker calls them. Invoker may be nil: there are none.
	Table   func() *wasmtools.RouteTable
	Invoker invoke.Invoker
	// Connections bounds how many connections tools have to the services that they ask. If nil, any number.
	Connections Room
	// Logger gets a line for what goes wrong beside the calls.
	Logger *slog.Logger
}

// A Room counts something that is limited. It is safe for concurrent use.
type Room interface {
	// Take counts one, and reports false if there is no room for it.
	Take() bool
	// Give counts one less.
	Give()
}

// A Given is the rule of a grant, and where that stands.
type Given struct {
	Rule Rule
	// Match is the grant's pattern, and Line where it begins in its file, or 0.
	Match string
	Line  int
}

// A Configuration is the grants that are about to be in force.
type Configuration struct {
	// Given are all rules of the kind, in the order of the grants.
	Given []Given
	// Secrets are those that there are.
	Secrets *Secrets
	// State is where a kind that Keeps something has it. If nil, there is none.
	State *Store
}

// Configure takes up a configuration, whose rules have been verified. Nothing may change for the calls that run under the one before.
type Configure func(c Configuration) Decide

// Decide says what the tool at a path such as "/weather/now" is granted of its need: a value for the functions, or nil, and what it lacks.
// matching are the rules for the tool, in order. It is safe for concurrent use. A value is of a type of the kind's own, or [Settings], and safe
// for concurrent use. Values that allow the same must be equal: by a method Equal(any) bool, by ==, or by reflect.DeepEqual if they can't be
// compared.
type Decide func(path string, n wasmtools.Need, matching []Given) (value any, missing []wasmtools.Missing)

// Reached is something outside of its sandbox that a tool reaches.
type Reached struct {
	// Capability is the name of the kind, and Entry what is reached of it, such as "https://api.example.com/v2".
	Capability string `json:"capability" description:"The capability, such as http."`
	Entry      string `json:"entry" description:"What is reached, such as a URL or the name of a secret."`
	// Detail says what else counts about it, such as the directory behind a name, or is empty.
	Detail string `json:"detail,omitempty" description:"More about it, such as the directory behind a name."`
	// Own is whether each caller reaches its own, and one who has no name that stays its own nothing.
	Own bool `json:"own,omitempty" description:"Whether it is the caller's own, which no other caller can reach."`
}

// Compare orders by all that is known, and returns 0 for what is the same.
func (r Reached) Compare(other Reached) int {
	return cmp.Or(strings.Compare(r.Capability, other.Capability), strings.Compare(r.Entry, other.Entry), strings.Compare(r.Detail, other.Detail))
}

// Settings are JSON that functions read with [hostcall.Call.Settings], also while the tool starts. One kind has them.
type Settings json.RawMessage

// Principal returns on whose behalf the tool of a call runs, or nil while it starts.
func Principal(c *hostabi.Call) *wasmtools.Principal {
	if of, ok := (*hostcall.Call)(c).Principal().(interface{ Who() *wasmtools.Principal }); ok {
		return of.Who()
	}
	return nil
}

// A Review is of one kind's rule of one grant.
type Review struct {
	// Needs are what the tools that the grant matches need of the kind.
	Needs []wasmtools.Need
	// All are what all tools need of it.
	All []wasmtools.Need
	// State is whether there is a place where tools keep things.
	State bool
	// Matches is whether the grant matches any tool.
	Matches bool
	// Nameless is whether there are tokens of auth.tokens. Their callers can have nothing of their own, since they have no lasting name.
	Nameless bool
	// Report is called with what is odd. The reviewer fills in Line and Capability.
	Report func(f Finding)

	entry string
}

// A Finding is what is wrong with the grants of a configuration, or dangerous.
type Finding struct {
	// Key is the place, such as "grant[0].http[1]". A Review gives only what follows the grant.
	Key string `json:"key"`
	// Line is the line of the configuration file where the grant begins, or 0.
	Line int `json:"line,omitempty"`
	// Message says what is wrong there, and what to do.
	Message string `json:"message"`
	// Warning tells that nothing is wrong, but much is granted.
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

// Unneeded reports an entry of the grant that no tool needs. The report names the entry's place, since the entry itself may be a secret that
// somebody has put there by mistake. what tells more about it.
func (v *Review) Unneeded(key, what string) {
	if v.Matches {
		v.Wrong(key, "%s is granted, but none of the tools that the grant matches needs it: remove it", what)
	}
}
