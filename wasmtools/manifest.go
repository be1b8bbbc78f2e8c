package wasmtools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// ManifestSection is the name of the custom section that holds a module's manifest.
const ManifestSection = "toolsrv.manifest"

// MaxManifest is the largest size of a manifest in bytes: 1 MiB.
const MaxManifest = 1 << 20

// MaxManifestTools is the largest number of tools in a manifest.
const MaxManifestTools = 1000

// ABI is the version of the contract between host and guest.
const ABI = 1

// A Manifest is what a module says of its tools. json.Marshal writes it in the form that ParseManifest reads.
type Manifest struct {
	// ABI is the contract that the module was built for; always [ABI] after ParseManifest.
	ABI int `json:"abi"`
	// Namespace is one or more names joined by "/", or empty: then the folder of the file decides.
	Namespace string `json:"namespace,omitempty"`
	// Version is the module's version as its author wrote it, or empty.
	Version string `json:"version,omitempty"`
	// SDK names what built the module, such as "go/0.1.0", or is empty.
	SDK string `json:"sdk,omitempty"`
	// Tools are the module's tools. toolsrv_call gets a tool's place in this list.
	Tools []ManifestTool `json:"tools"`
}

// A ManifestTool is one tool of a Manifest.
type ManifestTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the schema of the arguments as it was written: a JSON object. Whether it is a good schema is
	// not checked here.
	Parameters json.RawMessage `json:"parameters"`
	// Result is the schema of the result as it was written, a JSON object or a boolean, or nil.
	Result json.RawMessage `json:"result,omitempty"`
	// Examples are calls with their results. Their Arguments are JSON objects.
	Examples []Example `json:"examples,omitempty"`
}

// The members that each object of a manifest may have, in the order in which they are best written.
var (
	manifestMembers = []string{"abi", "namespace", "version", "sdk", "tools"}
	toolMembers     = []string{"name", "description", "parameters", "result", "examples"}
	exampleMembers  = []string{"arguments", "result"}
)

// ParseManifest reads a manifest and takes nothing that it does not understand: an unknown or repeated member, a wrong
// type or another ABI is an error that names the place and the remedy; the caller adds the file. The result shares no
// memory with text.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > MaxManifest {
		return nil, fmt.Errorf("%d bytes are more than the %d that are allowed: shorten its texts, or split the module", len(text), MaxManifest)
	}
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	top, err := objectAt("", text)
	if err != nil {
		return nil, err
	}
	// The ABI comes first: a manifest of a later one may have members that this server does not know.
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
	if err := CheckNamespace(m.Namespace); err != nil {
		return nil, err
	}
	if m.Version, err = top.text("version"); err != nil {
		return nil, err
	}
	if m.SDK, err = top.text("sdk"); err != nil {
		return nil, err
	}
	if m.Tools, err = top.tools(); err != nil {
		return nil, err
	}
	return m, nil
}

// abi reads the manifest's ABI.
func (o object) abi() (int, error) {
	raw, err := o.required("abi", "a number", "set it to 1")
	if err != nil {
		return 0, err
	}
	if string(raw) != fmt.Sprint(ABI) {
		return 0, fmt.Errorf("abi is %s, this server speaks ABI %d: rebuild the module with an SDK for ABI %d, or update the server",
			text.Short(string(raw)), ABI, ABI)
	}
	return ABI, nil
}

// tools reads the manifest's tools.
func (o object) tools() ([]ManifestTool, error) {
	list, err := o.list("tools")
	if err != nil {
		return nil, err
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("tools: there is none: declare at least one tool, with %s", wordList(toolMembers[:3]))
	case len(list) > MaxManifestTools:
		return nil, fmt.Errorf("tools: %d are more than the %d that are allowed: split the module", len(list), MaxManifestTools)
	}
	tools := make([]ManifestTool, len(list))
	places := make(map[string]int, len(list))
	for i, raw := range list {
		place := fmt.Sprintf("tools[%d]", i)
		t, err := toolAt(place, raw)
		if err != nil {
			return nil, err
		}
		if first, twice := places[t.Name]; twice {
			return nil, fmt.Errorf("%s.name: %q is the name of tools[%d], too: rename one", place, t.Name, first)
		}
		places[t.Name] = i
		tools[i] = t
	}
	return tools, nil
}

// toolAt reads one tool.
func toolAt(place string, raw json.RawMessage) (t ManifestTool, err error) {
	o, err := objectAt(place, raw)
	if err != nil {
		return t, err
	}
	if err := o.only(toolMembers); err != nil {
		return t, err
	}
	if _, err := o.required("name", "a string", "name the tool"); err != nil {
		return t, err
	}
	if t.Name, err = o.text("name"); err != nil {
		return t, err
	}
	if err := CheckName(t.Name); err != nil {
		return t, fmt.Errorf("%s: %w", o.at("name"), err)
	}
	const say = "say what the tool does and when to call it; agents choose tools by that"
	if _, err := o.required("description", "a string", say); err != nil {
		return t, err
	}
	if t.Description, err = o.text("description"); err != nil {
		return t, err
	}
	if strings.TrimSpace(t.Description) == "" {
		return t, fmt.Errorf("%s is empty: %s", o.at("description"), say)
	}
	if t.Parameters, err = o.required("parameters", "an object", `write a schema, {"type": "object"} where the tool takes nothing`); err != nil {
		return t, err
	}
	if result, ok := o.members["result"]; ok {
		if kind := kindOf(result); kind != "an object" && kind != "a boolean" {
			return t, fmt.Errorf("%s must be a schema, an object or a boolean, not %s: leave it out where the tool declares none", o.at("result"), kind)
		}
		t.Result = result
	}
	t.Examples, err = o.examples()
	return t, err
}

// examples reads a tool's examples.
func (o object) examples() ([]Example, error) {
	if _, ok := o.members["examples"]; !ok {
		return nil, nil
	}
	list, err := o.list("examples")
	if err != nil {
		return nil, err
	}
	examples := make([]Example, len(list))
	for i, raw := range list {
		example, err := objectAt(fmt.Sprintf("%s[%d]", o.at("examples"), i), raw)
		if err != nil {
			return nil, err
		}
		if err := example.only(exampleMembers); err != nil {
			return nil, err
		}
		if examples[i].Arguments, err = example.required("arguments", "an object", "write the body of a call, {} where the tool takes nothing"); err != nil {
			return nil, err
		}
		examples[i].Result = example.members["result"]
	}
	return examples, nil
}

// An object is one object of a manifest.
type object struct {
	place   string // such as "tools[1]", empty for the manifest itself
	members map[string]json.RawMessage
}

// objectAt returns the object in raw, which checkJSON has accepted as part of a manifest.
func objectAt(place string, raw json.RawMessage) (object, error) {
	o := object{place: place}
	if kind := kindOf(raw); kind != "an object" {
		if place == "" {
			place = "a manifest"
		}
		return o, fmt.Errorf("%s must be an object, not %s", place, kind)
	}
	return o, json.Unmarshal(raw, &o.members)
}

// at returns the place of a member.
func (o object) at(name string) string { return joinPlace(o.place, name) }

// only reports a member that is not known.
func (o object) only(known []string) error {
	var unknown []string
	for name := range o.members {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown) // the same error each time
	if near := text.Nearest(unknown[0], known); near != "" {
		return fmt.Errorf("%s: there is no such member; did you mean %q?", o.at(unknown[0]), near)
	}
	return fmt.Errorf("%s: there is no such member: remove it; there can be %s", o.at(unknown[0]), wordList(known))
}

// required returns the member of that name and kind.
func (o object) required(name, kind, remedy string) (json.RawMessage, error) {
	raw, ok := o.members[name]
	if !ok {
		return nil, fmt.Errorf("%s is missing: %s", o.at(name), remedy)
	}
	if got := kindOf(raw); got != kind {
		return nil, fmt.Errorf("%s must be %s, not %s: %s", o.at(name), kind, got, remedy)
	}
	return raw, nil
}

// text returns the string of that name, "" where there is none.
func (o object) text(name string) (string, error) {
	raw, ok := o.members[name]
	if !ok {
		return "", nil
	}
	if kind := kindOf(raw); kind != "a string" {
		return "", fmt.Errorf("%s must be a string, not %s: leave it out where there is none", o.at(name), kind)
	}
	var s string
	return s, json.Unmarshal(raw, &s)
}

// list returns the elements of the array of that name.
func (o object) list(name string) ([]json.RawMessage, error) {
	raw, err := o.required(name, "an array", "write a list in brackets")
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	return list, json.Unmarshal(raw, &list)
}

// kindOf returns the type of a JSON value, which is valid, in words.
func kindOf(raw json.RawMessage) string {
	switch bytes.TrimLeft(raw, " \t\r\n")[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// wordList joins words as prose.
func wordList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
