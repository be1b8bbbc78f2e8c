package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/textfile"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// maxProblems is how many problems are reported at once.
const maxProblems = 10

// A document is a TOML file that is being read: it knows where each key is, and collects the problems.
type document struct {
	scanner
	known    map[string]key.Table // the tables by name, to say where a misplaced key belongs; "" stands for the keys above the first table
	problems []problem
}

type problem struct {
	offset int
	err    error
}

// parse returns the values of the text.
func (d *document) parse() (values map[string]any, err error) {
	if len(d.text) > textfile.Max {
		return nil, fmt.Errorf("%s: %w", d.name, textfile.TooLarge(textfile.Max))
	}
	// This comes first, because it bounds the work of the decoder.
	if err := d.scan(); err != nil {
		return nil, err
	}
	err = toml.Unmarshal(d.text, &values)
	if e := (*toml.DecodeError)(nil); errors.As(err, &e) {
		line, column := e.Position()
		message := strings.TrimPrefix(e.Error(), "toml: ")
		if strings.Contains(message, "already") { // this message names the key
			message = "the key or table appears twice"
		}
		if strings.HasSuffix(message, " at start of value") {
			message += ": strings must be quoted"
		}
		return nil, fmt.Errorf("%s:%d:%d: %s", d.name, line, column, message)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return values, nil
}

// tableList reads the tables of an array [[name]], each into an element of to. No more tables than most are allowed. The
// text fewer tells the user how to manage with fewer tables. The array may be in an element of another array, whose place then has a number.
func tableList[T any](d *document, name string, most int, fewer string, to *[]T, read func(place string, values map[string]any, to *T)) keys.Reader {
	shown := name
	if i, j := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']'); i >= 0 {
		shown = name[:i] + name[j+1:]
	}
	form := fmt.Errorf("each %s is a table of its own: write [[%s]] above its keys", shown, shown)
	return func(value any) error {
		list, ok := value.([]any)
		if !ok {
			return form
		}
		if len(list) > most {
			return fmt.Errorf("there are %d %ss; at most %d are allowed: %s", len(list), shown, most, fewer)
		}
		*to = make([]T, len(list))
		for i, element := range list {
			place := index(name, i)
			values, ok := element.(map[string]any)
			if !ok {
				d.fail(place, form)
				continue
			}
			read(place, values, &(*to)[i])
		}
		return nil
	}
}

// readTable reads the members of the table at place.
func (d *document) readTable(place string, values map[string]any, t key.Table) {
	for name, value := range values {
		at := join(place, name)
		if read, ok := t[name]; !ok {
			d.problems = append(d.problems, problem{d.offsets[at], &unknownKeyError{place, name, t, d.known}})
		} else if err := read(value); err != nil {
			d.fail(at, err)
		}
	}
}

// fail notes a problem with the value of a key, or with one of its elements. The message has only known keys and no text of the file, since a secret
// may be anywhere by mistake, and readers of a log must not see it. The place shows what is meant.
func (d *document) fail(place string, err error) {
	offset, shown := d.offsets[place], place
	for nested := true; nested; {
		switch e := err.(type) {
		case *keys.ElementError:
			if shown == place {
				shown = index(place, e.Index)
			}
			place, err = index(place, e.Index), e.Err
		case *keys.MemberError:
			if shown == place && e.Known {
				shown = join(place, e.Name)
			}
			place, err = join(place, e.Name), e.Err
		default:
			nested = false
		}
		if at, ok := d.offsets[place]; ok {
			offset = at
		}
	}
	if u, ok := err.(*unknownKeyError); ok {
		err = fmt.Errorf("%s: %w", shown, u)
	} else {
		err = fmt.Errorf("%s: %s", shown, withoutValue(err.Error()))
	}
	d.problems = append(d.problems, problem{offset, err})
}

// refused reports whether the value at one of these places was wrong, so that its zero value has no meaning.
func (d *document) refused(places ...string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		at, ok := d.offsets[place]
		return ok && slices.ContainsFunc(d.problems, func(p problem) bool { return p.offset == at })
	})
}

// withoutValue removes the quoted value at the beginning of a message such as `"web" is not a mode`.
func withoutValue(message string) string {
	if value, err := strconv.QuotedPrefix(message); err == nil {
		return strings.TrimLeft(message[len(value):], " ")
	}
	return message
}

// err returns the first problems in the order of their lines, or nil if there are none.
func (d *document) err() error {
	slices.SortFunc(d.problems, func(a, b problem) int {
		if n := cmp.Compare(a.offset, b.offset); n != 0 {
			return n
		}
		return strings.Compare(a.err.Error(), b.err.Error())
	})
	var errs []error
	for i, p := range d.problems {
		if i == maxProblems {
			errs = append(errs, fmt.Errorf("%s: and %d more", d.name, len(d.problems)-i))
			break
		}
		errs = append(errs, fmt.Errorf("%s: %w", d.place(p.offset), p.err))
	}
	return errors.Join(errs...)
}

// An unknownKeyError is the error for a key that its table does not have. Its message is made only when it is shown, since a hostile file can have
// many unknown keys.
type unknownKeyError struct {
	place, name string
	table       key.Table
	known       map[string]key.Table
}

// Error says where the key belongs, or which key it may mean, or else which keys exist. It names the key only if that is a known one, or close to
// one.
func (e *unknownKeyError) Error() string {
	where := ""
	if list, _, ok := strings.Cut(e.place, "["); ok {
		where = " in [[" + list + "]]"
	} else if e.place != "" {
		where = " in [" + e.place + "]"
	}
	for _, other := range slices.Sorted(maps.Keys(e.known)) {
		if _, ok := e.known[other][e.name]; !ok {
			continue
		}
		message := "unknown key " + strconv.Quote(e.name) + where
		if other == "" {
			return message + ": it belongs above the first table"
		}
		return message + ": it belongs in [" + other + "]"
	}
	names := slices.Sorted(maps.Keys(e.table))
	if near := text.Nearest(e.name, names); near != "" {
		return "unknown key " + strconv.Quote(e.name) + where + ": did you mean " + strconv.Quote(near) + "?"
	}
	return "unknown key" + where + ": remove it, or update toolsrv if a newer one has it: the keys are " + strings.Join(names, ", ")
}
