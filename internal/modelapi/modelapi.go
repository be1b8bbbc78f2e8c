// Package modelapi says which of the large model APIs accept a tool for function calling, and why the others refuse it.
//
// What an API accepts is known from its documentation or, where that says nothing, from its error messages. docs/mcp.md lists the rules. They were
// read in:
//   - OpenAI: its client library 3.54.0 (November 2026), its guide https://developers.openai.com/api/docs/guides/structured-outputs (February 2026),
//     and reports of error messages: langchain-ai/langchainjs#9804 (January 2026), ogx-ai/ogx#3004 (September 2025), gptme/gptme#1697 (March 2026),
//     0x4m4/hexstrike-ai#65 (September 2025).
//   - Anthropic: its client library 2.12.0 (November 2026), its guide https://platform.claude.com/docs/en/build-with-claude/structured-outputs (2026),
//     and anthropics/claude-code#40075 (March 2026) and #79418 (August 2026).
//   - Gemini: its reference https://cloud.google.com/vertex-ai/docs/reference/rest/v1beta1/FunctionDeclaration (2026), anomalyco/opencode#12295
//     and google-gemini/gemini-cli#19083 (February 2026).
package modelapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// An API is one way to offer tools to a model.
type API string

// The APIs. Those in strict mode hold the model to the schema while it writes the arguments, and accept far fewer schemas.
const (
	OpenAI          API = "openai"
	OpenAIStrict    API = "openai-strict"
	Anthropic       API = "anthropic"
	AnthropicStrict API = "anthropic-strict"
	Gemini          API = "gemini"
)

// APIs returns all of them, in a fixed order.
func APIs() []API { return []API{OpenAI, OpenAIStrict, Anthropic, AnthropicStrict, Gemini} }

var (
	everywhere = APIs()
	openAI     = []API{OpenAI, OpenAIStrict}
	anthropic  = []API{Anthropic, AnthropicStrict}
	gemini     = []API{Gemini}
	strict     = []API{OpenAIStrict, AnthropicStrict}
)

// Strict reports whether the API holds the model to the schema.
func (a API) Strict() bool { return slices.Contains(strict, a) }

// A Tool is what an agent tells a model about a tool.
type Tool struct {
	// Name is the tool's name as clients see it: its operation id.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments.
	Parameters json.RawMessage
}

// A Reason is why some APIs refuse a tool.
type Reason struct {
	// APIs are those that refuse it. It is empty if only a client in front of the APIs refuses it.
	APIs []API `json:"apis"`
	// Rule is the stable name of the rule.
	Rule string `json:"rule"`
	// Place is the path to what is refused within the tool's declaration, such as "parameters/properties/a".
	Place string `json:"place"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// Usual reports whether the reason matters to every user of the tool, and not only to those who ask for strict mode.
func (r Reason) Usual() bool {
	return len(r.APIs) == 0 || slices.ContainsFunc(r.APIs, func(a API) bool { return !a.Strict() })
}

// Takers returns the APIs that have no reason to refuse a tool.
func Takers(reasons []Reason) []API {
	return slices.DeleteFunc(APIs(), func(a API) bool {
		return slices.ContainsFunc(reasons, func(r Reason) bool { return slices.Contains(r.APIs, a) })
	})
}

// The rules. Rules that the lint of schemas has, too, have the same names there.
const (
	ruleToolName    = "tool-name"   // the tool's name
	ruleDescription = "description" // the tool's description
	ruleRoot        = "root-object" // at the top level of the schema
	ruleName        = "name"        // an argument's name
	ruleItems       = "array-items" // arrays without a schema for their elements
	ruleSibling     = "ref-sibling" // $ref beside other members
	ruleStrict      = "strict"      // only refused by the strict APIs
)

const (
	// maxReasons is how many reasons are returned for a tool.
	maxReasons = 50
	// maxDescription is the longest description in characters.
	maxDescription = 1024
	// maxPrefixed is the longest name that fits into 64 characters with "mcp__toolsrv__" before it.
	maxPrefixed = maxName - len("mcp__toolsrv__")
	maxName     = 64
)

var (
	toolName       = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	argumentName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	identifier     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	beginsAsLetter = regexp.MustCompile(`^[A-Za-z_]`)
)

// Check returns the reasons why APIs refuse the tool, at most 50.
func Check(t Tool) []Reason {
	j := judge{}
	j.at("name", func() { j.name(t.Name) })
	j.at("description", func() {
		if n := utf8.RuneCountInString(t.Description); n > maxDescription {
			j.add(openAI, ruleDescription, "it has %d characters, %d are accepted: shorten it, and describe arguments in their own descriptions", n, maxDescription)
		}
	})
	var schema any
	if err := json.Unmarshal(t.Parameters, &schema); err != nil {
		schema = nil // parameters reports that it is not an object
	}
	j.at("parameters", func() { j.parameters(schema) })
	return j.reasons
}

// name judges the tool's name.
func (j *judge) name(name string) {
	switch {
	case len(name) > maxName || !toolName.MatchString(name):
		j.add(everywhere, ruleToolName, "%q is not 1 to 64 of the characters A-Z a-z 0-9 _ -: rename the tool or its namespace", text.Short(name))
	case len(name) > maxPrefixed:
		j.add(nil, ruleToolName, "%d characters are too many once Claude Code or Cursor puts the server's name in front: shorten the namespace and the name to %d together", len(name), maxPrefixed)
	}
	if !beginsAsLetter.MatchString(name) {
		j.add(gemini, ruleToolName, "it begins with neither a letter nor _: rename the tool or its namespace")
	}
}

// A judge checks one tool.
type judge struct {
	path    []string // the path to the current place
	reasons []Reason
	size    size
	refs    references
}

// at calls f with the path extended by one step.
func (j *judge) at(token string, f func()) {
	j.path = append(j.path, token)
	f()
	j.path = j.path[:len(j.path)-1]
}

func (j *judge) add(apis []API, rule, format string, args ...any) {
	if len(j.reasons) >= maxReasons {
		return
	}
	tokens := make([]string, len(j.path))
	for i, token := range j.path {
		tokens[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(text.Short(token))
	}
	j.reasons = append(j.reasons, Reason{apis, rule, strings.Join(tokens, "/"), fmt.Sprintf(format, args...)})
}
