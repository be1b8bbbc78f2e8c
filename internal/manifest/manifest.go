// Package manifest reads the manifest in which a module describes its tools.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Section is the name of the custom section that holds a module's manifest.
const Section = "toolsrv.manifest"

// EngineSection is the name of the custom section in which an interpreter describes itself: a JSON object with "version", "revision" and other
// members.
const EngineSection = "toolsrv.engine"

// Max is the largest size of a manifest in bytes: 1 MiB.
const Max = 1 << 20

// MaxTools is the largest number of tools in a manifest.
const MaxTools = 1000

// ABI is the version of the contract between host and guest.
const ABI = 1

// A Manifest is a module's description of its tools. json.Marshal writes it in the form that Parse reads.
type Manifest struct {
	// ABI is the contract that the module was built for; always [ABI] after Parse.
	ABI int `json:"abi"`
	// Namespace is one or more names joined by "/". If it is empty, the folder of the file decides.
	Namespace string `json:"namespace,omitempty"`
	// Version is the module's version as its author wrote it, or empty.
	Version string `json:"version,omitempty"`
	// SDK names what built the module, such as "go/0.1.0", or is empty.
	SDK string `json:"sdk,omitempty"`
	// Engine is the interpreter in the module, such as "cpython 3.13.5 (1f0c2a9b)", or empty if it has none.
	Engine string `json:"engine,omitempty"`
	// Needs are what all of the tools need. Only here can a need be an object, such as the schema of settings.
	Needs wasmtools.Needs `json:"needs,omitempty"`
	// Tools are the module's tools. toolsrv_call gets the index of a tool in this list.
	Tools []Tool `json:"tools"`
}

// A Tool is one tool of a Manifest.
type Tool struct {
	Name string `json:"name"`
	// Title is the tool's name for people, such as "Add two numbers", or empty.
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	// Annotations are hints about what the tool does.
	Annotations wasmtools.Annotations `json:"annotations,omitzero"`
	// Icons are pictures for it.
	Icons []wasmtools.Icon `json:"icons,omitempty"`
	// Needs are what this tool needs in addition to the Needs of the manifest.
	Needs wasmtools.Needs `json:"needs,omitempty"`
	// Parameters is the schema of the arguments as it was written: a JSON object. Whether it is a valid schema is not checked here.
	Parameters json.RawMessage `json:"parameters"`
	// Result is the schema of the result as it was written, a JSON object or a boolean, or nil.
	Result json.RawMessage `json:"result,omitempty"`
	// Examples are calls with their results. Their Arguments are JSON objects.
	Examples []wasmtools.Example `json:"examples,omitempty"`
}

// The members that each object of a manifest may have, in the order in which they are best written.
var (
	manifestMembers = []string{"abi", "namespace", "version", "sdk", "engine", "needs", "tools"}
	toolMembers     = []string{"name", "title", "description", "annotations", "icons", "needs", "parameters", "result", "examples"}
	exampleMembers  = []string{"arguments", "result"}
)

// Parse reads a manifest, and refuses all that it does not understand: an unknown or repeated member, a wrong type or another ABI is an error that
// says where it is and what to do. The caller adds the name of the file. The result shares no memory with text. forms are the needs that a manifest
// can have, besides those that begin with [ForeignNeed]. The server's are builtin.Needs.
func Parse(text []byte, forms ...Form) (*Manifest, error) {
	if len(text) > Max {
		return nil, fmt.Errorf("%d bytes are too many; at most %d are allowed: shorten its texts, or split the module", len(text), Max)
	}
	tree, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	top := part{tree: tree}
	if kind := top.kind(); kind != jsontree.Object {
		return nil, fmt.Errorf("a manifest must be an object, not %s", kindNames[kind])
	}
	// The ABI is read first: a manifest for a later ABI may have members that this server does not know.
	m := &Manifest{}
	if m.ABI, err = top.abi(); err != nil {
		return nil, err
	}
	if err := top.only(manifestMembers); err != nil {
		return nil, err
	}
	if m.Namespace, err = top.text("namespace"); err != nil {
		return nil, err
	}
	if err := naming.CheckNamespace(m.Namespace); err != nil {
		return nil, err
	}
	if m.Version, err = top.text("version"); err != nil {
		return nil, err
	}
	if m.SDK, err = top.text("sdk"); err != nil {
		return nil, err
	}
	if m.Engine, err = top.text("engine"); err != nil {
		return nil, err
	}
	if m.Needs, err = top.needs(forms); err != nil {
		return nil, err
	}
	if m.Tools, err = top.tools(forms); err != nil {
		return nil, err
	}
	return m, nil
}

// abi reads the manifest's ABI.
func (p part) abi() (int, error) {
	abi, err := p.required("abi", jsontree.Number, "set it to 1")
	if err != nil {
		return 0, err
	}
	if got := abi.value().Text; got != strconv.Itoa(ABI) {
		return 0, fmt.Errorf("abi is %s, but this server speaks ABI %d: rebuild the module with an SDK for ABI %d, or update the server",
			text.Short(got), ABI, ABI)
	}
	return ABI, nil
}

// tools reads the manifest's tools.
func (p part) tools(forms []Form) ([]Tool, error) {
	array, err := p.array("tools")
	if err != nil {
		return nil, err
	}
	switch n := array.value().Count; {
	case n == 0:
		return nil, errors.New("tools is empty: declare at least one tool, with name, description and parameters")
	case n > MaxTools:
		return nil, fmt.Errorf("tools: %d are too many; at most %d are allowed: split the module", n, MaxTools)
	}
	list, err := array.objects()
	if err != nil {
		return nil, err
	}
	tools := make([]Tool, len(list))
	places := make(map[string]int, len(list))
	for i, item := range list {
		t, err := item.tool(forms)
		if err != nil {
			return nil, err
		}
		if first, twice := places[t.Name]; twice {
			return nil, fmt.Errorf("%s.name: %q is also the name of tools[%d]: rename one", item.place, t.Name, first)
		}
		places[t.Name] = i
		tools[i] = t
	}
	return tools, nil
}

// tool reads one tool.
func (p part) tool(forms []Form) (t Tool, err error) {
	if err := p.only(toolMembers); err != nil {
		return t, err
	}
	if _, err := p.required("name", jsontree.String, "name the tool"); err != nil {
		return t, err
	}
	if t.Name, err = p.text("name"); err != nil {
		return t, err
	}
	if err := wasmtools.CheckName(t.Name); err != nil {
		return t, fmt.Errorf("%s: %w", p.at("name"), err)
	}
	const say = "say what the tool does and when to call it: agents choose tools by their descriptions"
	if _, err := p.required("description", jsontree.String, say); err != nil {
		return t, err
	}
	if t.Description, err = p.text("description"); err != nil {
		return t, err
	}
	if strings.TrimSpace(t.Description) == "" {
		return t, fmt.Errorf("%s is empty: %s", p.at("description"), say)
	}
	if err := p.appearance(&t); err != nil {
		return t, err
	}
	if t.Needs, err = p.needs(forms); err != nil {
		return t, err
	}
	parameters, err := p.required("parameters", jsontree.Object, `write a schema, or {"type": "object"} if the tool takes nothing`)
	if err != nil {
		return t, err
	}
	t.Parameters = parameters.raw()
	if result, ok := p.member("result"); ok {
		if kind := result.kind(); kind != jsontree.Object && kind != jsontree.Bool {
			return t, fmt.Errorf("%s must be a schema, an object or a boolean, not %s: leave it out if the tool declares none", p.at("result"), kindNames[kind])
		}
		t.Result = result.raw()
	}
	t.Examples, err = p.examples()
	return t, err
}

// examples reads a tool's examples.
func (p part) examples() ([]wasmtools.Example, error) {
	if !p.has("examples") {
		return nil, nil
	}
	array, err := p.array("examples")
	if err != nil {
		return nil, err
	}
	list, err := array.objects()
	if err != nil {
		return nil, err
	}
	examples := make([]wasmtools.Example, len(list))
	for i, example := range list {
		if err := example.only(exampleMembers); err != nil {
			return nil, err
		}
		arguments, err := example.required("arguments", jsontree.Object, "write the body of a call, or {} if the tool takes nothing")
		if err != nil {
			return nil, err
		}
		examples[i].Arguments = arguments.raw()
		if result, ok := example.member("result"); ok {
			examples[i].Result = result.raw()
		}
	}
	return examples, nil
}

// A part is one value of a manifest.
type part struct {
	tree  *jsontree.Tree
	index int32
	place string // such as "tools[1]", empty for the manifest itself
}

func (p part) value() *jsontree.Value { return &p.tree.Values[p.index] }

func (p part) kind() jsontree.Kind { return p.value().Kind }

// raw returns a copy of the value as it was written.
func (p part) raw() json.RawMessage { return json.RawMessage(p.value().Text) }

// at returns the place of a member of that name.
func (p part) at(name string) string { return joinPlace(p.place, name) }

// member returns the member of that name of an object.
func (p part) member(name string) (member part, ok bool) {
	i := p.tree.Member(p.index, name)
	return part{p.tree, i, p.at(name)}, i != 0
}

// has reports whether an object has a member of that name.
func (p part) has(name string) bool { return p.tree.Member(p.index, name) != 0 }

// only checks that the object has no members other than the known ones. Its error names an unknown one.
func (p part) only(known []string) error {
	var unknown []string
	for i := p.value().First; i != 0; i = p.tree.Values[i].Next {
		if name := p.tree.Values[i].Key; !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	first := slices.Min(unknown)
	if near := text.Nearest(first, known); near != "" {
		return fmt.Errorf("%s: unknown member; did you mean %q?", p.at(first), near)
	}
	return fmt.Errorf("%s: unknown member: remove it; the members are %s", p.at(first), wordList(known))
}

// required returns the member of that name and kind.
func (p part) required(name string, kind jsontree.Kind, remedy string) (part, error) {
	member, ok := p.member(name)
	if !ok {
		return part{}, fmt.Errorf("%s is missing: %s", p.at(name), remedy)
	}
	if got := member.kind(); got != kind {
		return part{}, fmt.Errorf("%s must be %s, not %s: %s", p.at(name), kindNames[kind], kindNames[got], remedy)
	}
	return member, nil
}

// text returns a copy of the string member of that name, or "" if there is none.
func (p part) text(name string) (string, error) {
	member, ok := p.member(name)
	if !ok {
		return "", nil
	}
	if kind := member.kind(); kind != jsontree.String {
		return "", fmt.Errorf("%s must be a string, not %s: leave it out if there is none", p.at(name), kindNames[kind])
	}
	return strings.Clone(member.value().Decoded()), nil
}

// array returns the array member of that name.
func (p part) array(name string) (part, error) {
	return p.required(name, jsontree.Array, "write a list in brackets")
}

// objects returns the elements of an array of objects.
func (p part) objects() ([]part, error) {
	list := make([]part, 0, p.value().Count)
	for i := p.value().First; i != 0; i = p.tree.Values[i].Next {
		item := part{p.tree, i, fmt.Sprintf("%s[%d]", p.place, len(list))}
		if kind := item.kind(); kind != jsontree.Object {
			return nil, fmt.Errorf("%s must be an object, not %s", item.place, kindNames[kind])
		}
		list = append(list, item)
	}
	return list, nil
}

// kindNames are the types of JSON values in words.
var kindNames = [...]string{
	jsontree.Null: "null", jsontree.Bool: "a boolean", jsontree.Number: "a number",
	jsontree.String: "a string", jsontree.Array: "an array", jsontree.Object: "an object",
}

// wordList joins words with commas and "and".
func wordList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
