package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A reader checks the value of one key and stores it. Its error says what is wrong with the value, and what is allowed.
type reader func(value any) error

// A table holds the readers of its keys.
type table map[string]reader

// The ranges of what can be set. The table of defaults in docs/configuration.md repeats them.
const (
	maxText        = 200      // bytes of a title or a version
	maxDescription = 64 << 10 // bytes
	maxReason      = 1000     // bytes
	maxURL         = 2000     // bytes
	maxOverrides   = 1000
	defaultModules = 10_000
	maxModules     = 100_000
	minMemory      = 16 << 20 // bytes for all tools
	maxMemory      = 1 << 40
)

var errOverride = errors.New("each override is a table of its own: write [[override]] above its keys")

// tables returns the readers of all keys but those of [[override]], by the names of their tables.
func tables(c *Config, l *limits.Limits, mode *string, directory string) map[string]table {
	return map[string]table{
		"": {
			"title":       prose(&c.Title, 1, maxText),
			"version":     prose(&c.Version, 1, maxText),
			"description": prose(&c.Description, 0, maxDescription),
		},
		"server": {
			"address":     address(&c.Server.Address),
			"public_url":  publicURL(&c.Server.PublicURL),
			"memory":      zeroOr(&c.Server.Memory, quantity(limits.Bytes, minMemory, maxMemory, func(n int64) { c.Server.Memory = n })),
			"code_memory": zeroOr(&c.Server.CodeMemory, quantity(limits.Bytes, minMemory, maxMemory, func(n int64) { c.Server.CodeMemory = n })),
		},
		"tools": {
			"directory":       path(&c.Tools.Directory, directory, true),
			"modules":         quantity(limits.Count, 0, maxModules, func(n int64) { c.Tools.Modules = cmp.Or(int(n), defaultModules) }),
			"mode":            oneOf(mode, "denylist", "allowlist"),
			"enabled":         list(&c.Tools.Enabled, toolOrNamespace),
			"disabled":        disabled(&c.Tools),
			"cache_directory": path(&c.Tools.CacheDir, directory, false),
		},
		"auth": {
			"tokens":      list(&c.Auth.Tokens, token),
			"tokens_file": path(&c.Auth.TokensFile, directory, false),
			"required":    boolean(&c.Auth.Required),
		},
		"limits": limitsTable(l),
	}
}

// limitsTable returns the readers of the keys that [limits] and [[override]] have in common.
func limitsTable(l *limits.Limits) table {
	t := table{}
	for _, e := range limits.All() {
		t[e.Key] = quantity(e.Unit, e.Least, e.Most, func(n int64) { e.Set(l, n) })
	}
	return t
}

// SetLimit sets a limit as the table [limits] would, by its key and a text such as "64MiB": for flags of the command line. It
// takes the limits that are times and sizes.
func SetLimit(l *limits.Limits, key, value string) error {
	read, ok := limitsTable(l)[key]
	if !ok {
		return fmt.Errorf("there is no limit %q", text.Short(key))
	}
	return read(value)
}

// read returns what text says, above the defaults.
func (d *document) read(text []byte, directory string) (*Config, error) {
	values, err := d.parse(text)
	if err != nil {
		return nil, err
	}
	c := Default()
	c.Tools.Directory = inDirectory(directory, c.Tools.Directory)
	var set limits.Limits
	mode := ""
	known := tables(c, &set, &mode, directory)

	top := known[""]
	for name, t := range known {
		if name != "" {
			top[name] = d.tableReader(name, t, known)
		}
	}
	top["override"] = d.overridesReader(&c.Overrides, known)
	d.readTable("", values, top, known)

	if mode == "" && len(c.Tools.Enabled) > 0 {
		d.failValue("tools.enabled", errors.New(`the list counts only with mode = "allowlist": set mode, too`))
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	c.Tools.Allowlist = mode == "allowlist"
	c.Limits = set.Over(c.Limits)
	return c, nil
}

// readTable reads the members of the table at place; known is where a key that is not in t may belong.
func (d *document) readTable(place string, values map[string]any, t table, known map[string]table) {
	for name, value := range values {
		key := join(place, name)
		read, ok := t[name]
		if !ok {
			d.fail(key, &unknownKeyError{place, name, t, known})
			continue
		}
		if err := read(value); err != nil {
			d.failValue(key, err)
		}
	}
}

// failValue notes what a reader said of the value at key.
func (d *document) failValue(key string, err error) {
	if e, ok := err.(*elementError); ok {
		key = index(key, e.index)
		err = e.err
	}
	d.fail(key, fmt.Errorf("%s: %w", key, err))
}

// tableReader reads a table such as [server].
func (d *document) tableReader(name string, t table, known map[string]table) reader {
	return func(value any) error {
		values, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is a table: write [%s] above its keys", name, name)
		}
		d.readTable(name, values, t, known)
		return nil
	}
}

// overridesReader reads the tables [[override]].
func (d *document) overridesReader(overrides *[]Override, known map[string]table) reader {
	return func(value any) error {
		list, ok := value.([]any)
		if !ok {
			return errOverride
		}
		if len(list) > maxOverrides {
			return fmt.Errorf("there are %d overrides, %d are allowed: use patterns such as \"math/*\"", len(list), maxOverrides)
		}
		*overrides = make([]Override, len(list))
		for i, element := range list {
			place := index("override", i)
			values, ok := element.(map[string]any)
			if !ok {
				d.failValue(place, errOverride)
				continue
			}
			o := &(*overrides)[i]
			t := limitsTable(&o.Limits)
			t["match"] = match(&o.Match)
			d.readTable(place, values, t, known)
			if _, ok := values["match"]; !ok {
				d.failValue(place, errors.New(`match is missing: name the tools, as in match = "math/*"`))
			}
		}
		return nil
	}
}

// An unknownKeyError is a key that its table does not have. The message is made when it is shown, because a hostile
// file has more of them than are.
type unknownKeyError struct {
	place, name string
	table       table
	known       map[string]table
}

// Error says where the key belongs, what it may mean, or else what there is.
func (e *unknownKeyError) Error() string {
	where := ""
	if strings.HasPrefix(e.place, "override[") {
		where = " in [[override]]"
	} else if e.place != "" {
		where = " in [" + e.place + "]"
	}
	message := "unknown key " + strconv.Quote(text.Short(e.name)) + where
	for _, other := range slices.Sorted(maps.Keys(e.known)) {
		if _, ok := e.known[other][e.name]; !ok {
			continue
		}
		if other == "" {
			return message + ": it belongs above the first table"
		}
		return message + ": it belongs in [" + other + "]"
	}
	names := slices.Sorted(maps.Keys(e.table))
	if near := text.Nearest(e.name, names); near != "" {
		return message + ": did you mean " + strconv.Quote(near) + "?"
	}
	return message + ": there are " + strings.Join(names, ", ")
}
