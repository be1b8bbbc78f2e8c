package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A Search says when clients search for tools instead of listing them all.
type Search string

const (
	// SearchAuto is SearchNever for views of at most 200 tools, and SearchAlways for larger ones.
	SearchAuto Search = "auto"
	// SearchNever lists all tools. Clients put the whole list into the model's context.
	SearchNever Search = "never"
	// SearchAlways lists two tools, search_tools and call_tool, through which a model reaches the others.
	SearchAlways Search = "always"
)

// searchAbove is the number of tools above which SearchAuto means SearchAlways.
const searchAbove = 200

const (
	searchName = "search_tools"
	callName   = "call_tool"
)

const (
	// searchMost is the largest number of tools in an answer of search_tools.
	searchMost = 50
	// searchBytes is the size of an answer of search_tools, in bytes, above which further tools come without their schemas.
	searchBytes = 128 << 10
	// callFrame is how many bytes the arguments of call_tool may have in addition to those of the called tool.
	callFrame = 4 << 10
	// namespacesMost is how many namespaces the description of search_tools names.
	namespacesMost = 40
	// nearestMost is how many names are compared to find the one that was meant. With 500 long names this takes 5 ms.
	nearestMost = 500
)

const searchDescription = "Finds this server's tools by keywords. The answer lists each tool's name, description and inputSchema; call one with " + callName + "."

const searchParameters = `{"type":"object","properties":{` +
	`"query":{"type":"string","maxLength":1000,"description":"Words that say what the tool should do, or part of its name. If empty, any tools, by name."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":50,"default":10,"description":"How many tools to return at most."}},` +
	`"required":["query"],"additionalProperties":false}`

const callParameters = `{"type":"object","properties":{` +
	`"name":{"type":"string","maxLength":128,"description":"The tool's name, as search_tools returns it."},` +
	`"arguments":{"type":"object","description":"The arguments, which must fit the tool's inputSchema."}},` +
	`"required":["name"],"additionalProperties":false}`

// ownSchemas are the schemas of a set's own tools, compiled when a view first needs them.
type ownSchemas struct{ search, call func() *schema.Schema }

func newOwnSchemas() ownSchemas {
	compiled := func(text string) func() *schema.Schema {
		return sync.OnceValue(func() *schema.Schema { return schema.MustCompile(text) })
	}
	return ownSchemas{compiled(searchParameters), compiled(callParameters)}
}

// A directory is the two tools through which a model finds and calls a view's tools.
type directory struct {
	view   *View
	search *entry
	call   *entry
}

func (v *View) newDirectory() *directory {
	d := &directory{view: v}
	yes, no := true, false
	s := v.derived.set
	d.search = s.newEntry(&wasmtools.Tool{
		Name:        searchName,
		Title:       "Search tools",
		Description: searchDescription + v.namespaces(maxDescription-len(searchDescription)),
		Parameters:  s.own.search(),
		Annotations: wasmtools.Annotations{ReadOnly: &yes, OpenWorld: &no},
		MaxInput:    16 << 10,
		Caller:      wasmtools.CallerFunc(d.find),
	})
	largest := int64(wasmtools.DefaultMaxInput)
	for _, e := range v.listed {
		largest = max(largest, e.tool.MaxInput)
	}
	d.call = s.newEntry(&wasmtools.Tool{
		Name:        callName,
		Title:       "Call a tool",
		Description: "Calls a tool that " + searchName + " has found, and returns its result.",
		Parameters:  s.own.call(),
		MaxInput:    largest + callFrame,
		Caller:      &relay{view: v},
	})
	return d
}

// namespaces lists the namespaces of a view for the model, in at most a number of characters.
func (v *View) namespaces(most int) string {
	var all []string
	for _, e := range v.listed {
		if name, _, _ := strings.Cut(e.tool.Namespace, "/"); name != "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for n := min(len(all), namespacesMost); n > 0; n-- {
		more := ""
		if left := len(all) - n; left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		if text := " Its namespaces: " + strings.Join(all[:n], ", ") + more + "."; len(text) <= most {
			return text
		}
	}
	return ""
}

// A found is one tool in an answer of search_tools.
type found struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// searchPatience is how long a search waits for others.
const searchPatience = 5 * time.Second

// enterSearch takes one of the places for searches. There are half as many places as processors: a search among thousands of tools takes a processor
// for tens of milliseconds, and many searches would keep everybody else waiting.
func (s *Set) enterSearch(ctx context.Context) error {
	select {
	case s.searches <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(searchPatience)
	defer timer.Stop()
	select {
	case s.searches <- struct{}{}:
		return nil
	case <-timer.C:
		return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many searches for tools are running; try again later"}
	case <-ctx.Done():
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: context.Cause(ctx)}
	}
}

// find answers search_tools.
func (d *directory) find(ctx context.Context, call *wasmtools.Call) ([]byte, error) {
	var asked struct {
		Query string
		Limit int
	}
	if err := json.Unmarshal(call.Arguments, &asked); err != nil {
		return nil, err
	}
	set := d.view.derived.set
	if err := set.enterSearch(ctx); err != nil {
		return nil, err
	}
	defer func() { <-set.searches }()
	ranked, all := d.view.rank(asked.Query, min(asked.Limit, searchMost))
	var answer struct {
		Tools []found `json:"tools"`
		// More is how many further tools match some of the words.
		More int `json:"more,omitempty"`
	}
	answer.Tools = []found{}
	size := 0
	for _, e := range ranked {
		var f found
		if err := json.Unmarshal(e.shown[Modern], &f); err != nil {
			return nil, err
		}
		if size += len(f.InputSchema) + len(f.Description); size > searchBytes && len(answer.Tools) > 0 {
			f.InputSchema, f.Description = nil, text.Clip(f.Description, 200)
		}
		answer.Tools = append(answer.Tools, f)
	}
	answer.More = all - len(answer.Tools)
	return encode(answer)
}

// A relay calls the tool that call_tool names. It is a Runner. Its result is that of the called tool, and has been checked already.
type relay struct {
	view   *View
	called *entry // the entry of the called tool, once it has been called
}

var _ wasmtools.Caller = (*relay)(nil)

// IsRunner does nothing.
func (*relay) IsRunner() {}

// Call calls the tool.
func (r *relay) Call(ctx context.Context, call *wasmtools.Call) (result []byte, err error) {
	var asked struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(call.Arguments, &asked); err != nil {
		return nil, err
	}
	inner := invoker.Inside(call, nil)
	inner.Arguments, inner.Listener = asked.Arguments, call.Listener
	n, ok := r.view.find(asked.Name, call.Principal)
	if !ok {
		err := r.view.unknown(asked.Name)
		r.view.derived.set.invoker.Refuse(asked.Name, inner, err)
		return nil, err
	}
	r.called = r.view.derived.entries[n]
	defer func() { call.Uses = inner.Uses }()
	i, err := r.view.derived.set.invoker.BeginInside(r.view.derived.generation.Routes()[n], inner)
	if err != nil {
		return nil, err
	}
	defer func() { i.End(err) }()
	if result, err = i.Run(ctx); err != nil {
		return nil, err
	}
	return result, nil
}

// unknown returns the error for a name without a tool: the tool's file may not have been read yet, or the client may have meant a similar
// name.
func (v *View) unknown(name string) *wasmtools.Error {
	if soon := v.derived.set.NotYet(); soon != nil {
		return soon
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: v.nearest(name)}
}

// nearest returns a message that says that no tool has this name, and which name may have been meant.
func (v *View) nearest(name string) string {
	message := fmt.Sprintf("There is no tool %q.", text.Short(name))
	if len(v.listed) <= nearestMost {
		names := make([]string, len(v.listed))
		for i, e := range v.listed {
			names[i] = e.name
		}
		if nearest := text.Nearest(name, names); nearest != "" {
			return message + fmt.Sprintf(" Did you mean %q?", nearest)
		}
	}
	return message + " " + searchName + " finds the names of tools."
}

// own returns the entry of one of the view's own tools, or nil.
func (v *View) own(name string) *entry {
	switch {
	case v.directory == nil:
	case name == searchName:
		return v.directory.search
	case name == callName:
		return v.directory.call
	}
	return nil
}

// indexOf returns the index of some entries, and uses the set's lexicon for it. If most of the lexicon's words are no longer in use, a new lexicon
// replaces it.
func (s *Set) indexOf(entries []*entry) (words, [][]indexed) {
	s.lexicons.Lock()
	defer s.lexicons.Unlock()
	if s.lexicon == nil || s.lexicon.isStale(entries) {
		s.lexicon = &lexicon{}
	}
	return s.lexicon.index(entries)
}
