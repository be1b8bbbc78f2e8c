// Package switches stores which tools operators have switched on and off, so that it holds after a restart.
package switches

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// Space is the name of the space with the switches.
	Space = "switches"
	// Form is the format of its record.
	Form byte = 1
	// record is the key of the only record. So several switches can be changed at once, and all have the same version.
	record = "all"
)

// Switches are the switches of one route table. All methods are safe for concurrent use.
type Switches struct {
	table *wasmtools.RouteTable
	space state.Space // nil if there is none

	mu        sync.Mutex                  // held during a change; guards what follows
	kept      map[string]wasmtools.Switch // the stored switches by scope
	version   uint64                      // the version of the record
	passing   map[string]bool             // scopes that are switched only until the restart
	unwritten int                         // changes of those
}

// Open puts the stored switches in force. It must be called before the table has tools. If the store is nil, nothing can be stored. An error says
// why the stored switches are not in force; the Switches can be used all the same, but don't overwrite the stored ones.
func Open(ctx context.Context, store state.Store, table *wasmtools.RouteTable) (*Switches, error) {
	s := &Switches{table: table, kept: map[string]wasmtools.Switch{}, passing: map[string]bool{}}
	if store == nil {
		return s, nil
	}
	s.space = store.Space(Space)
	if err := s.read(ctx); err != nil {
		return s, fmt.Errorf("read the switches: %w", err)
	}
	if len(s.kept) > 0 {
		table.Switch(sorted(s.kept), nil)
	}
	return s, nil
}

// read reads the record.
func (s *Switches) read(ctx context.Context) error {
	entry, ok, err := s.space.Get(ctx, record, state.MaxValue)
	if err != nil {
		return err
	}
	kept := map[string]wasmtools.Switch{}
	if ok {
		var list []kind
		if err := state.Decode(entry.Value, Form, &list); err != nil {
			return err
		}
		for _, k := range list {
			kept[k.Scope] = wasmtools.Switch(k)
		}
	}
	s.kept, s.version = kept, entry.Version
	return nil
}

// A kind is a switch in its stored form.
type kind struct {
	Scope   string    `json:"scope"`
	Enabled bool      `json:"enabled"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since"`
	By      string    `json:"by,omitempty"`
}

func encode(list []wasmtools.Switch) ([]byte, error) {
	written := make([]kind, len(list))
	for i, s := range list {
		written[i] = kind(s)
	}
	return state.Encode(Form, written)
}

// sorted returns switches sorted by their scopes, so that a wider scope comes before those that it covers.
func sorted(of map[string]wasmtools.Switch) []wasmtools.Switch {
	list := make([]wasmtools.Switch, 0, len(of))
	for _, scope := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[scope])
	}
	return list
}

// A Change says what to switch.
type Change struct {
	// Set has new switches, and Reset the scopes that should be as the configuration says.
	Set   []wasmtools.Switch
	Reset []string
	// Passing means that the change is not stored, and holds only until the restart.
	Passing bool
	// Expect is called with the version of the switches before the change; if it returns an error, the change is not made. It may be nil.
	Expect func(version string) error
}

// ErrNotKept is the cause of an error if there is no state to store switches in.
var ErrNotKept = errors.New("switches can't be stored, since the configuration names neither state.directory nor state.url")

// ErrChanged is returned if another process has changed the record. The record's switches are in force then, and the change has not been made.
var ErrChanged = errors.New("somebody else has just switched something: look at the switches, and try again")

// Apply makes a change, which is in force and stored when Apply returns. It returns false if everything is already switched as the change asks.
// After an error nothing has changed.
func (s *Switches) Apply(ctx context.Context, c Change) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Expect != nil {
		if err := c.Expect(s.versionText()); err != nil {
			return false, err
		}
	}
	if s.isSo(&c) {
		return false, nil
	}
	next, passing := maps.Clone(s.kept), maps.Clone(s.passing)
	drop := func(scope string) {
		maps.DeleteFunc(passing, func(old string, _ bool) bool { return covers(scope, old) })
		if !c.Passing {
			maps.DeleteFunc(next, func(old string, _ wasmtools.Switch) bool { return covers(scope, old) })
		}
	}
	for _, one := range c.Set {
		drop(one.Scope)
		if c.Passing {
			passing[one.Scope] = true
		} else {
			next[one.Scope] = one
		}
	}
	for _, scope := range c.Reset {
		drop(scope)
	}
	if same := maps.Equal(next, s.kept); same {
		s.unwritten++
	} else if err := s.write(ctx, next); err != nil {
		return false, err
	}
	s.kept, s.passing = next, passing
	s.table.Switch(c.Set, c.Reset)
	return true, nil
}

// write writes the record.
func (s *Switches) write(ctx context.Context, next map[string]wasmtools.Switch) error {
	if s.space == nil {
		return ErrNotKept
	}
	value, err := encode(sorted(next))
	if err != nil {
		return err
	}
	if len(value) > state.MaxValue {
		return fmt.Errorf("there are too many switches: switch namespaces instead of tools, or reset some: %w", state.ErrTooLarge)
	}
	version, err := s.space.Set(ctx, record, value, int64(s.version), state.SetOptions{})
	if errors.Is(err, state.ErrConflict) { // another process uses the same state, or it could not be read at the start
		if again := s.take(ctx); again != nil {
			return fmt.Errorf("store the switches: %w", again)
		}
		return ErrChanged
	}
	if err != nil {
		return fmt.Errorf("store the switches: %w", err)
	}
	s.version = version
	return nil
}

// take reads the record, and puts in force what has changed. s.mu is held.
func (s *Switches) take(ctx context.Context) error {
	before, version := s.kept, s.version
	if err := s.read(ctx); err != nil || s.version == version {
		return err
	}
	var set []wasmtools.Switch
	var reset []string
	for _, one := range sorted(s.kept) {
		// Setting or resetting a scope also resets all switches below it.
		above := func(other string) bool {
			return other != one.Scope && covers(other, one.Scope) && s.kept[other] != before[other]
		}
		if s.kept[one.Scope] != before[one.Scope] || slices.ContainsFunc(slices.Collect(maps.Keys(s.kept)), above) || slices.ContainsFunc(slices.Collect(maps.Keys(before)), above) {
			set = append(set, one)
		}
	}
	for scope := range before {
		if _, has := s.kept[scope]; !has {
			reset = append(reset, scope)
		}
	}
	for _, scope := range reset {
		maps.DeleteFunc(s.passing, func(old string, _ bool) bool { return covers(scope, old) })
	}
	for _, one := range set {
		maps.DeleteFunc(s.passing, func(old string, _ bool) bool { return covers(one.Scope, old) })
	}
	isAbove := func(scope string) bool {
		return slices.ContainsFunc(set, func(one wasmtools.Switch) bool { return covers(scope, one.Scope) })
	}
	if slices.ContainsFunc(reset, isAbove) {
		s.table.Switch(nil, reset) // resets first, so that they don't undo what is set
		reset = nil
	}
	s.table.Switch(set, reset)
	return nil
}

// Follow puts changes of other processes in force, until ctx ends. After each try, failed is called with the error, or with nil after a success.
func (s *Switches) Follow(ctx context.Context, failed func(error)) {
	if s.space == nil {
		return
	}
	take := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.take(ctx)
	}
	state.Follow(ctx, s.space, record, state.Follower{
		Take:   func(state.Event) error { return take() },
		Whole:  func(map[string]bool) error { return take() },
		Failed: failed,
	})
}

// Refresh puts in force what other processes have switched by now.
func (s *Switches) Refresh(ctx context.Context) error {
	shared, ok := s.space.(state.Shared)
	if !ok {
		return nil
	}
	if err := shared.Refresh(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(ctx)
}

// IsSo reports whether a change would have no effect.
func (s *Switches) IsSo(c *Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isSo(c)
}

// isSo is IsSo with s.mu held, so that the table has the stored switches.
func (s *Switches) isSo(c *Change) bool {
	now := map[string]wasmtools.Switch{}
	for _, one := range s.table.Current().Switches() {
		now[one.Scope] = one
	}
	for _, one := range c.Set {
		is, ok := now[one.Scope]
		below := slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(other string) bool { return other != one.Scope && covers(one.Scope, other) })
		if !ok || below || is.Enabled != one.Enabled || is.Reason != one.Reason || !c.Passing && s.passing[one.Scope] {
			return false
		}
	}
	for _, scope := range c.Reset {
		for other := range now {
			if covers(scope, other) {
				return false
			}
		}
	}
	return true
}

// Version returns the version of all switches, for [Change.Expect].
func (s *Switches) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versionText()
}

func (s *Switches) versionText() string {
	if s.unwritten == 0 {
		return fmt.Sprint(s.version)
	}
	return fmt.Sprintf("%d.%d", s.version, s.unwritten)
}

// IsPassing reports whether the switch of a scope holds only until the restart.
func (s *Switches) IsPassing(scope string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, kept := s.kept[scope]
	return s.passing[scope] || !kept
}

// Scope returns the scope that a name on the command line stands for: a tool such as "math/add", or a namespace such as "math" or "math/*"; "*"
// stands for all tools.
func Scope(name string) (string, error) {
	scope := strings.TrimPrefix(name, "/")
	for _, all := range []string{"/**", "/*", "/"} {
		scope = strings.TrimSuffix(scope, all)
	}
	switch {
	case name == "/" || scope == "*" || scope == "**":
		return "/", nil
	case scope == "":
		return "", errors.New(`the name is empty: name a tool or a namespace, such as "math/add" or "math", or "*" for all`)
	case strings.Contains(scope, "*"):
		return "", fmt.Errorf("%q can't be switched, since tools that match it may be added later: name tools or namespaces", text.Short(name))
	}
	return "/" + scope, pattern.CheckNames(scope)
}

// covers reports whether the tool or namespace at scope is the one at other, or contains it.
func covers(scope, other string) bool {
	rest, ok := strings.CutPrefix(other, scope)
	return ok && (rest == "" || rest[0] == '/' || scope == "/")
}
