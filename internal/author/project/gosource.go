package project

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// maxSource bounds the bytes of a Go file that are read.
const maxSource = 64 << 20

// readGo reads from the Go files whether TinyGo compiles them, and for which target. A file that is not Go is left to the compiler, whose errors are
// better.
func (p *Project) readGo(files []string) error {
	p.Language = Go
	for _, file := range files {
		text, err := readBounded(file, maxSource)
		if err != nil {
			return fmt.Errorf("look for the language: %w", err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			continue
		}
		for _, group := range parsed.Comments {
			for _, comment := range group.List {
				words, ok := strings.CutPrefix(comment.Text, "//toolsrv:")
				if !ok {
					continue
				}
				if err := p.readDirective(strings.Fields(words)); err != nil {
					return fmt.Errorf("%s: %q: %w", file, comment.Text, err)
				}
			}
		}
	}
	return nil
}

// readDirective reads the text after //toolsrv: in a Go file.
func (p *Project) readDirective(words []string) error {
	if slices.Contains(words, "goroutines") {
		return errors.New("TinyGo's goroutines are refused, because one that runs out of stack overwrites the tool's data: do without them, or leave out the line, so that Go builds the tool")
	}
	if len(words) == 0 || words[0] != "tinygo" {
		return errDirective
	}
	words = words[1:]
	stack := tinygoStack
	if n := len(words) - 1; n >= 0 && strings.HasPrefix(words[n], "stack=") {
		var err error
		if stack, err = text.ParseSize(strings.TrimPrefix(words[n], "stack=")); err != nil {
			return fmt.Errorf("%s: %w", words[n], err)
		}
		if stack < tinygoStack || stack > maxTinygoStack {
			return fmt.Errorf("%s: a stack can have %s to %s, and has %[2]s by default", words[n], text.Size(tinygoStack), text.Size(maxTinygoStack))
		}
		words = words[:n]
	}
	if len(words) > 1 {
		return errDirective
	}
	stack = (stack + 15) &^ 15 // as the linker requires
	target := ""
	if len(words) == 1 {
		if target = words[0]; target != "wasip1" && target != "wasm-unknown" {
			return fmt.Errorf("%q is not a target for tools: write wasip1 or wasm-unknown, or leave it out", target)
		}
	}
	if p.Language == TinyGo && (p.target != target || p.stack != stack) {
		return errors.New("another file in the folder has a different line of this kind: keep one of the two")
	}
	p.Language, p.target, p.stack = TinyGo, target, stack
	return nil
}

var errDirective = errors.New("the line that makes TinyGo compile a package is //toolsrv:tinygo [wasip1 | wasm-unknown] [stack=SIZE]")
