package javascript

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
)

// maxLine is the greatest length of a script's line that is shown, in bytes: longer ones are written by machines.
const maxLine = 200

// messages returns esbuild's messages for the author: place, sentence, line and caret, and then a suggestion.
func messages(m *modules, all []api.Message) string {
	var out strings.Builder
	for i, said := range all {
		if i > 0 {
			out.WriteByte('\n')
		}
		writeMessage(m, &out, "", remedied(said.Text), said.Location)
		for _, note := range said.Notes {
			if strings.Contains(note.Text, "external") || strings.Contains(note.Text, "Platform") || strings.Contains(note.Text, "MainFields") {
				continue // about esbuild's options, which the author doesn't know
			}
			out.WriteByte('\n')
			writeMessage(m, &out, "  ", note.Text, note.Location)
		}
	}
	return out.String()
}

// unresolved matches esbuild's message about an import that leads nowhere.
var unresolved = regexp.MustCompile(`^Could not resolve "([^"]+)"$`)

// remedied returns a message, and adds what to do if it is about an import that leads nowhere.
func remedied(message string) string {
	found := unresolved.FindStringSubmatch(message)
	switch {
	case found == nil:
		return message
	case strings.HasPrefix(found[1], ".") || strings.HasPrefix(found[1], "/"):
		return fmt.Sprintf("there is no file %q", found[1])
	}
	name, _ := packageName(found[1])
	return fmt.Sprintf("there is no package %q here: run npm install %s", name, name)
}

func writeMessage(m *modules, out *strings.Builder, indent, message string, at *api.Location) {
	message = strings.ReplaceAll(message, `"`+confined+":", `"`)
	if at == nil {
		fmt.Fprintf(out, "%s%s", indent, message)
		return
	}
	file, line := m.shown(at.File), at.LineText
	if lines := strings.Split(m.originals[file], "\n"); at.Line <= len(lines) && lines[at.Line-1] != "" {
		line = strings.TrimSuffix(lines[at.Line-1], "\r")
	}
	// esbuild counts bytes.
	column := utf8.RuneCountInString(line[:min(at.Column, len(line))])
	fmt.Fprintf(out, "%s%s:%d:%d: %s", indent, file, at.Line, column+1, message)
	if line == "" || len(line) > maxLine {
		return
	}
	before := strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\t'
		}
		return ' '
	}, line[:min(at.Column, len(line))])
	fmt.Fprintf(out, "\n%s    %s\n%s    %s^", indent, strings.TrimRight(line, " \t\r"), indent, before)
}
