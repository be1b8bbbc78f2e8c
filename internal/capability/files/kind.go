package files

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// Kind returns the capability. Its needs are the names of directories. Its functions are WASI's, which every tool has.
func Kind() capability.Kind {
	return capability.Kind{
		Name: "files", Module: wasi.Module,
		Word:    wasmtools.CheckName,
		New:     func() capability.Rule { return &Rule{} },
		Review:  review,
		Suggest: suggest,
		Reaches: reaches,
		Open:    open,
	}
}

// A Rule is the part of one grant in the configuration that concerns directories.
type Rule struct {
	// Directories are the paths of directories, by the names that tools use for them.
	Directories map[string]string
}

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of the rule's keys.
func (r *Rule) Keys(directory string) key.Table {
	return key.Table{
		// names and paths | directories that may be read
		"files": keys.Entries(&r.Directories, `a table such as {geo = "/srv/geo"}`, keys.Name,
			func(to *string) keys.Reader { return keys.Word(to, "a path", keys.Path(directory, true)) }),
	}
}

// Shown returns what a log may show of the rule.
func (r *Rule) Shown() []key.Shown { return []key.Shown{key.Silent("files", r.Directories)} }

func review(v *capability.Review, from capability.Rule) {
	r := from.(*Rule)
	needs := func(all []wasmtools.Need, name string) bool {
		return slices.ContainsFunc(all, func(n wasmtools.Need) bool { return slices.Contains(n.Words, name) })
	}
	for _, name := range slices.Sorted(maps.Keys(r.Directories)) {
		v, place := v, "files"
		if needs(v.All, name) { // any other name may be a secret in the wrong place
			v, place = v.Of(name), "files."+name
		}
		if err := Check(r.Directories[name]); err != nil {
			v.Wrong(place, "%v", keys.Pathless(err))
		} else if filepath.Dir(r.Directories[name]) == r.Directories[name] {
			v.Warn(place, "this grants all files on the machine that the server can read, including its configuration and its keys: name a folder")
		}
		if !needs(v.Needs, name) {
			v.Unneeded(place, "a folder")
		}
	}
}

func suggest(n wasmtools.Need) string {
	entries := ""
	for _, name := range n.Words {
		if entries != "" {
			entries += ", "
		}
		entries += keys.Quote(name) + " = " + keys.Quote("/path/to/"+name)
	}
	return "files = {" + entries + "}\n"
}

// open grants directories. If there are two for one name, the last one applies.
func open(capability.Host) capability.Configure {
	return func(capability.Configuration) capability.Decide {
		return func(_ string, n wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			granted := map[string]string{}
			var missing []wasmtools.Missing
			for _, need := range n.Words {
				directory := ""
				for _, given := range matching {
					if path, ok := given.Rule.(*Rule).Directories[need]; ok {
						directory = path
					}
				}
				if directory == "" {
					missing = append(missing, wasmtools.Missing{Capability: "files", Entry: need})
					continue
				}
				granted[need] = directory
			}
			if len(granted) == 0 {
				return nil, missing
			}
			return Grant(granted), missing
		}
	}
}

// reaches returns the names and paths of the directories.
func reaches(value any) (all []capability.Reached) {
	directories := value.(*wasi.Permission).Directories
	for _, name := range slices.Sorted(maps.Keys(directories)) {
		all = append(all, capability.Reached{Capability: "files", Entry: name, Detail: fmt.Sprint(directories[name])})
	}
	return all
}
