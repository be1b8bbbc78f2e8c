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

// maxEngine is how many bytes an engine section may have at most. The same bound applies to each of its values, which a manifest repeats.
const maxEngine = 4 << 10

// engineOf returns the engine in a module's engine section, such as "cpython 3.13.5 (1f0c2a9b)". It returns "" for a module without such a section,
// which is not an interpreter with a script.
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

// withEngine returns the text of a manifest, a JSON object, with the engine as its first member.
func withEngine(manifest []byte, engine string) ([]byte, error) {
	name, err := json.Marshal(engine)
	if err != nil {
		return nil, err
	}
	members := bytes.TrimLeft(bytes.TrimSpace(manifest)[1:], " \t\r\n")
	return append(append(append([]byte(`{"engine": `), name...), ", "...), members...), nil
}

// A ScriptError is an interpreter's error about its script. Its text can be shown to the script's author unchanged: the place, the line, and what to
// do.
type ScriptError struct{ Text string }

// Error returns the text.
func (e *ScriptError) Error() string { return e.Text }

// describeError returns a readable error for a failed toolsrv_describe.
func describeError(engine string, err error) error {
	failed, ok := errors.AsType[*sandbox.Error](err)
	switch {
	case !ok:
	case failed.Outcome == sandbox.ToolError && engine == "": // the SDK's error about the author's declarations
		return err
	case failed.Outcome == sandbox.ToolError:
		return &ScriptError{failed.Message}
	case engine == "":
	case failed.Outcome == sandbox.Cancelled, failed.Outcome == sandbox.Overloaded, failed.Outcome == sandbox.Internal: // not the script's fault
	default: // the trace is from the interpreter, not from the script
		return fmt.Errorf("the script can't be started: %s", failed.Message)
	}
	return fmt.Errorf("run toolsrv_describe: %s%w", explain(err), err)
}
