package wasmtools

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Annotations are what an author says about a tool's effects, for clients that ask a person before they call it. They are hints: nothing
// forces a tool to respect them. Nil means that the author has not said anything.
type Annotations struct {
	// ReadOnly means that the tool changes nothing outside itself.
	ReadOnly *bool `json:"readOnly,omitempty"`
	// Destructive means that the tool may overwrite or delete something; a tool that changes things, but is not destructive,
	// only adds. A tool can't be both read-only and destructive.
	Destructive *bool `json:"destructive,omitempty"`
	// Idempotent means that a second call with the same arguments has no further effect.
	Idempotent *bool `json:"idempotent,omitempty"`
	// OpenWorld means that the tool deals with the world outside the service, as a web search does.
	OpenWorld *bool `json:"openWorld,omitempty"`
}

// check reports what is wrong with the annotations, or nil.
func (a Annotations) check() error {
	if a.ReadOnly != nil && *a.ReadOnly && a.Destructive != nil && *a.Destructive {
		return errors.New("the tool is both readOnly and destructive: a tool that changes nothing destroys nothing; remove one")
	}
	return nil
}

// maxTitle is the largest length of a title in characters.
const maxTitle = 200

// checkTitle reports what is wrong with a tool's title, or nil. An empty title means that there is none.
func checkTitle(title string) error {
	switch {
	case title == "":
		return nil
	case !utf8.ValidString(title):
		return errors.New("it is not UTF-8")
	case utf8.RuneCountInString(title) > maxTitle:
		return fmt.Errorf("%d characters are too many; at most %d are allowed: say the rest in the description", utf8.RuneCountInString(title), maxTitle)
	case strings.TrimSpace(title) == "":
		return errors.New("it is blank: leave it out, or name the tool in a few words")
	case strings.ContainsFunc(title, controls):
		return errors.New("it has line breaks, or other characters that control how text is shown: write it on one line, without them")
	}
	return nil
}

// controls reports whether a character controls how others are shown: a control character, a line separator, or one that changes the direction of
// writing, which could make a title look like a different one.
func controls(r rune) bool {
	return unicode.IsControl(r) || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// CheckAppearance reports what is wrong with the members of a tool that clients show or act upon, or nil. The error begins with the name of
// the member.
func (t *Tool) CheckAppearance() error {
	if err := checkTitle(t.Title); err != nil {
		return fmt.Errorf("title: %w", err)
	}
	if err := t.Annotations.check(); err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	return checkIcons(t.Icons)
}
