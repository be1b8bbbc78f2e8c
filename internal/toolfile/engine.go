package toolfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/text"
)

// maxEngine bounds an engine section, and each of its words that a manifest repeats, in bytes.
const maxEngine = 4 << 10

// engineOf returns what a module's engine section says it is, such as "cpython 3.13.5 (1f0c2a9b)", or "" if it has none: then it
// is not an interpreter with a script.
func engineOf(binary *wasmbin.Module) (string, error) {
	section, ok, err := binary.Custom(manifest.EngineSection)
	if err != nil || !ok {
		return "", err
	}
	if len(section) > maxEngine {
		return "", fmt.Errorf("custom section %s: %d bytes are too many; at most %d are allowed", manifest.EngineSection, len(section), maxEngine)
	}
	var said struct{ Version, Revision string }
	if err := json.Unmarshal(section, &said); err != nil {
		return "", fmt.Errorf("custom section %s: %w", manifest.EngineSection, err)
	}
	for _, word := range []string{said.Version, said.Revision} {
		if word == "" || !utf8.ValidString(word) || strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r > '~' }) {
			return "", fmt.Errorf("custom section %s: %q is not a version: version and revision are words in ASCII", manifest.EngineSection, text.Short(word))
		}
	}
	return fmt.Sprintf("%s (%s)", said.Version, said.Revision), nil
}

// withEngine returns the text of a manifest, an object with members, with the engine as its first one.
func withEngine(manifest []byte, engine string) ([]byte, error) {
	name, err := json.Marshal(engine)
	if err != nil {
		return nil, err
	}
	members := bytes.TrimLeft(bytes.TrimSpace(manifest)[1:], " \t\r\n")
	return append(append(append([]byte(`{"engine": `), name...), ", "...), members...), nil
}

// A ScriptError is what an interpreter says is wrong with its script. Its text is for the script's author, as it is: the place,
// the line, and what to do.
type ScriptError struct{ Text string }

// Error returns the text.
func (e *ScriptError) Error() string { return e.Text }

// describeError returns the error of toolsrv_describe for people.
func describeError(engine string, err error) error {
	failed, ok := errors.AsType[*sandbox.Error](err)
	switch {
	case !ok:
	case failed.Outcome == sandbox.ToolError && engine == "": // what the SDK says of the author's declarations
		return err
	case failed.Outcome == sandbox.ToolError:
		return &ScriptError{failed.Message}
	case engine == "":
	case failed.Outcome == sandbox.Cancelled, failed.Outcome == sandbox.Overloaded, failed.Outcome == sandbox.Internal: // not the script's fault
	default: // the trace is the interpreter's
		return fmt.Errorf("the script can't be started: %s", failed.Message)
	}
	return fmt.Errorf("run toolsrv_describe: %s%w", explain(err), err)
}
