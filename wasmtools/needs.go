package wasmtools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/text"
)

// Needs are what a tool wants to reach outside of its sandbox. It can reach nothing that it does not declare, and nothing that its
// operator does not grant. The zero Needs are none. Their slices must not be changed.
type Needs struct {
	// HTTP are origins with or without the prefix of a path, such as "https://api.example.com" or "https://*.example.com/v2/".
	HTTP []string `json:"http,omitempty"`
	// KV is whether the tool keeps keys with values.
	KV bool `json:"kv,omitempty"`
	// Secrets are the names of those that the tool has to see.
	Secrets []string `json:"secrets,omitempty"`
	// Config is the JSON Schema of the settings, an object, or nil where there are none.
	Config json.RawMessage `json:"config,omitempty"`
	// Tools are those that the tool calls, such as "units/convert".
	Tools []string `json:"tools,omitempty"`
	// Files are the names of the directories that the tool reads.
	Files []string `json:"files,omitempty"`
}

// What needs may hold. All tools of a module have the module's needs, so what is made of them is made a thousand times.
const (
	maxNeeds   = 100 // entries of each list
	maxNeedURL = 300 // bytes of an entry of HTTP: a name of DNS has 253
)

// needMembers are the members of needs, in the order in which they are best written.
var needMembers = []string{"http", "kv", "secrets", "config", "tools", "files"}

// IsZero reports whether nothing is needed.
func (n Needs) IsZero() bool {
	return len(n.HTTP) == 0 && !n.KV && len(n.Secrets) == 0 && n.Config == nil && len(n.Tools) == 0 && len(n.Files) == 0
}

// Words returns what is needed worded for people, such as "http https://api.example.com".
func (n Needs) Words() (words []string) {
	add := func(what string, names []string) {
		for _, name := range names {
			words = append(words, what+name)
		}
	}
	add("http ", n.HTTP)
	if n.KV {
		words = append(words, "kv")
	}
	add("secret ", n.Secrets)
	if n.Config != nil {
		words = append(words, "config")
	}
	add("tool ", n.Tools)
	add("files ", n.Files)
	return words
}

// maxLacks is how much a text says of what a tool lacks, in bytes: a manifest may ask for much.
const maxLacks = 1 << 10

// Lacks returns what is missing in one line for people, "" where nothing is.
func (t *Tool) Lacks() string { return text.Clip(strings.Join(t.Missing, ", "), maxLacks) }

// And returns what n and more need together, which shares memory with both.
func (n Needs) And(more Needs) Needs {
	if more.IsZero() {
		return n
	}
	if n.IsZero() {
		return more
	}
	u := Needs{
		HTTP: union(n.HTTP, more.HTTP), KV: n.KV || more.KV, Secrets: union(n.Secrets, more.Secrets), Config: n.Config,
		Tools: union(n.Tools, more.Tools), Files: union(n.Files, more.Files),
	}
	if u.Config == nil {
		u.Config = more.Config
	}
	return u
}

// union returns the elements of a, and those that only b has.
func union(a, b []string) []string {
	u := slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(u, s) {
			u = append(u, s)
		}
	}
	return u
}

// needs reads what a manifest or one of its tools needs.
func (p part) needs() (n Needs, err error) {
	if !p.has("needs") {
		return n, nil
	}
	object, err := p.required("needs", jsontree.Object, "leave it out where nothing is needed")
	if err != nil {
		return n, err
	}
	if err := object.only(needMembers); err != nil {
		return n, err
	}
	for _, list := range []struct {
		name  string
		to    *[]string
		check func(string) error
	}{
		{"http", &n.HTTP, checkNeedURL},
		{"secrets", &n.Secrets, CheckSecretName},
		{"tools", &n.Tools, checkNeedTool},
		{"files", &n.Files, CheckName},
	} {
		if *list.to, err = object.words(list.name, list.check); err != nil {
			return n, err
		}
	}
	if kv, err := object.boolean("kv"); err != nil {
		return n, err
	} else if kv != nil {
		n.KV = *kv
	}
	if !object.has("config") {
		return n, nil
	}
	if p.place != "" {
		return n, fmt.Errorf("%s: a tool has no settings of its own: move it to the manifest's own needs", object.at("config"))
	}
	config, err := object.required("config", jsontree.Object, "write the JSON Schema of the settings")
	if err != nil {
		return n, err
	}
	n.Config = config.raw()
	return n, nil
}

// words returns the strings of the array of that name, nil where there is none.
func (p part) words(name string, check func(string) error) ([]string, error) {
	if !p.has(name) {
		return nil, nil
	}
	array, err := p.array(name)
	if err != nil {
		return nil, err
	}
	if n := array.value().Count; n > maxNeeds {
		return nil, fmt.Errorf("%s: %d are too many; at most %d are allowed", array.place, n, maxNeeds)
	}
	words := make([]string, 0, array.value().Count)
	for i := array.value().First; i != 0; i = p.tree.Values[i].Next {
		item := part{p.tree, i, fmt.Sprintf("%s[%d]", array.place, len(words))}
		if kind := item.kind(); kind != jsontree.String {
			return nil, fmt.Errorf("%s must be a string, not %s", item.place, kindNames[kind])
		}
		word := strings.Clone(item.value().Decoded())
		if err := check(word); err != nil {
			return nil, fmt.Errorf("%s: %w", item.place, err)
		}
		if slices.Contains(words, word) {
			return nil, fmt.Errorf("%s: %q appears twice: remove one", item.place, text.Short(word))
		}
		words = append(words, word)
	}
	return words, nil
}

// checkNeedURL reports what is wrong with an entry of HTTP.
func checkNeedURL(s string) error {
	if len(s) > maxNeedURL {
		return fmt.Errorf("%q is not the address of a service: it has %d bytes; the limit is %d", text.Short(s), len(s), maxNeedURL)
	}
	_, err := reach.ParsePattern(s)
	return err
}

// CheckSecretName reports what is wrong with the name of a secret, or nil: it is 1 to 64 of the characters A-Z a-z 0-9 . _ and -, and
// does not begin with a dot.
func CheckSecretName(s string) error {
	if CheckName(strings.ReplaceAll(s, ".", "_")) != nil || s[0] == '.' {
		return fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, without a dot at the beginning", text.Short(s))
	}
	return nil
}

// checkNeedTool reports what is wrong with the path of a tool.
func checkNeedTool(s string) error {
	namespace, name := "", s
	if slash := strings.LastIndexByte(s, '/'); slash >= 0 {
		namespace, name = s[:slash], s[slash+1:]
	}
	if CheckName(name) != nil || CheckNamespace(namespace) != nil || strings.HasPrefix(s, "/") {
		return fmt.Errorf("%q is not the path of a tool: name one such as \"units/convert\"", text.Short(s))
	}
	return nil
}
