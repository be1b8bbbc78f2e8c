package project

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// maxSource is more than the largest Go file in bytes.
const maxSource = 64 << 20

var targetName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// readGo learns from the Go files whether TinyGo compiles them, and for what. A file that is not Go is left to the
// compiler, whose errors are better.
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

// readDirective reads what follows //toolsrv: in a Go file.
func (p *Project) readDirective(words []string) error {
	target := ""
	goroutines := len(words) > 1 && words[len(words)-1] == "goroutines"
	if goroutines {
		words = words[:len(words)-1]
	}
	if len(words) == 0 || words[0] != "tinygo" || len(words) > 2 {
		return errors.New("the line that has TinyGo compile a package is //toolsrv:tinygo [TARGET] [goroutines]")
	}
	if len(words) == 2 {
		if target = words[1]; !targetName.MatchString(target) {
			return fmt.Errorf("%q is not a target: write wasip1 or wasm-unknown, or leave it out", target)
		}
	}
	if goroutines && target == "wasm-unknown" {
		return errors.New("TinyGo runs goroutines on wasip1, not on wasm-unknown: leave out the target, or goroutines")
	}
	if p.Language == TinyGo && (p.target != target || p.goroutines != goroutines) {
		return errors.New("another file of the folder has another such line: keep one of the two")
	}
	p.Language, p.target, p.goroutines = TinyGo, target, goroutines
	return nil
}
