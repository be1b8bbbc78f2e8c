package toolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// maxDescription is the longest description, in characters, that all model APIs accept. They refuse a whole request with a longer one, so the set
// never writes one.
const maxDescription = 1024

// An entry is what MCP shows of a tool. It is made once, and kept as long as the table has the tool.
type entry struct {
	tool    *wasmtools.Tool
	name    string
	hidden  string             // why the tool can't be shown, or empty
	media   *schemas.Media     // where files are in its results, or nil
	headers []Header           // properties whose values clients repeat in headers
	shown   [2]json.RawMessage // an element of tools/list for each era
	sum     [8]byte            // of shown

	words numbered // guarded by Set.lexicons
}

// annotations are a tool's annotations in the protocol's words.
type annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// newEntry describes a tool. If a tool can't be described, it is hidden and a warning names it, since clients refuse the whole list for one bad
// element.
func (s *Set) newEntry(tool *wasmtools.Tool) *entry {
	e := &entry{tool: tool, name: tool.OperationID()}
	if err := e.describe(s.log); err != nil {
		e.hidden = err.Error()
		s.log.Warn("a tool is hidden from MCP clients", slog.String("path", tool.Path()), slog.String("problem", e.hidden))
	}
	return e
}

func (e *entry) describe(log *slog.Logger) error {
	input, err := inputOf(e.tool.Parameters)
	if err != nil {
		return fmt.Errorf("schema of the parameters: %w", err)
	}
	var output json.RawMessage
	if e.tool.Result != nil {
		if output, err = outputOf(e.tool.Result); err != nil {
			return fmt.Errorf("schema of the result: %w", err)
		}
		e.media = (*schemas.Schema)(e.tool.Result).Media()
	}
	headers, shown, wrong := headersOf(input)
	if wrong != nil {
		log.Warn("MCP clients won't be asked to repeat a tool's arguments in headers", slog.String("path", e.tool.Path()), slog.String("problem", wrong.Error()))
	}
	e.headers = headers
	if e.shown[Modern], err = e.element(shown, output, e.tool.Description); err != nil {
		return err
	}
	if e.shown[Legacy], err = e.older(input, shown, output); err != nil {
		return err
	}
	e.sum = hash(e.shown[Legacy], e.shown[Modern])
	return nil
}

// element returns an element of tools/list. The schemas are compact, and that of the result may be empty.
func (e *entry) element(input, output json.RawMessage, description string) (json.RawMessage, error) {
	t := e.tool
	out := make([]byte, 0, len(t.Title)+len(description)+len(input)+len(output)+256)
	out = append(append(append(out, `{"name":"`...), e.name...), '"')
	member := func(name, text string) {
		if text != "" {
			out = appendString(append(append(append(out, `,"`...), name...), `":`...), text)
		}
	}
	member("title", t.Title)
	member("description", description)
	if len(t.Icons) > 0 {
		icons, err := encode(t.Icons)
		if err != nil {
			return nil, err
		}
		out = append(append(out, `,"icons":`...), icons...)
	}
	out = append(append(out, `,"inputSchema":`...), input...)
	if len(output) > 0 {
		out = append(append(out, `,"outputSchema":`...), output...)
	}
	if t.Annotations != (wasmtools.Annotations{}) {
		hints, err := encode(annotations(t.Annotations))
		if err != nil {
			return nil, err
		}
		out = append(append(out, `,"annotations":`...), hints...)
	}
	out = append(append(append(out, `,"_meta":{"`+digestKey+`":"`...), t.Fingerprint()...), `"}}`...)
	return slices.Clip(out), nil
}

// digestKey is the member of an element with a digest of what is shown. It lets a client recognize that a tool which it has approved is unchanged.
const digestKey = "io.github.toolsrv/digest"

// within reports whether the tool belongs to a namespace or to one below it.
func (e *entry) within(namespace string) bool {
	rest, ok := strings.CutPrefix(e.tool.Namespace, namespace)
	return namespace == "" || ok && (rest == "" || rest[0] == '/')
}

// encode returns compact JSON that leaves <, > and & as they are: schemas are shown as they were written.
func encode(v any) (json.RawMessage, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
