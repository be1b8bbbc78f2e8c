package toolsrv

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options are what clients show or use of a tool besides its name and description. All of them may be left out.
type Options struct {
	// Title is the tool's name for people, such as "Add two numbers": one line of at most 200 characters.
	Title string
	// Annotations say what the tool does to the world.
	Annotations Annotations
	// Icons are pictures for the tool, at most 8.
	Icons []Icon
	// Needs are what this tool can't do without, besides its module's needs. They have no Settings.
	Needs Needs
}

// With returns the tool with options, in place of those that it had:
//
//	toolsrv.Func("add", "Add two numbers.", add).With(toolsrv.Options{
//		Title:       "Add two numbers",
//		Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No},
//	})
func (t Tool) With(o Options) Tool {
	t.options = o
	t.options.Icons = append([]Icon(nil), o.Icons...)
	t.options.Needs = o.Needs.copied()
	return t
}

// Annotations are what an author says about a tool's effects. Clients decide by them whether to ask a person before a call. They are hints:
// nothing makes a tool keep to them.
type Annotations struct {
	// ReadOnly means that the tool changes nothing outside itself.
	ReadOnly Hint
	// Destructive means that the tool may overwrite or delete something; a tool that changes things, but is not destructive,
	// only adds. A tool can't be both read-only and destructive.
	Destructive Hint
	// Idempotent means that a second call with the same arguments has no further effect.
	Idempotent Hint
	// OpenWorld means that the tool deals with the world outside the service, as a web search does.
	OpenWorld Hint
}

// A Hint is yes, no, or the zero value if the author does not say.
type Hint uint8

// The hints.
const (
	Yes Hint = iota + 1
	No
)

// An Icon is a picture that clients may show beside a tool. The Src of all icons of a tool have at most 32 KiB in total.
type Icon struct {
	// Src is where the picture is: an address that begins with https://, or the picture itself as a data: URI in base64.
	Src string `json:"src"`
	// MIMEType is the picture's type, such as "image/png". It may be empty.
	MIMEType string `json:"mimeType,omitempty"`
	// Sizes are the sizes that the picture suits, at most 16: "48x48", or "any" for one that scales. If empty, all.
	Sizes []string `json:"sizes,omitempty"`
	// Theme is "light" or "dark" for a picture made for such a background, or empty.
	Theme string `json:"theme,omitempty"`
}

// The bounds of the server.
const (
	maxTitle     = 200
	maxIcons     = 8
	maxIconBytes = 32 << 10
	maxIconSizes = 16
)

// manifestAnnotations are annotations as the manifest has them.
type manifestAnnotations struct {
	ReadOnly    *bool `json:"readOnly,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"openWorld,omitempty"`
}

// describe returns the annotations as the manifest has them, or nil if there are none.
func (a Annotations) describe() *manifestAnnotations {
	if a == (Annotations{}) {
		return nil
	}
	return &manifestAnnotations{a.ReadOnly.value(), a.Destructive.value(), a.Idempotent.value(), a.OpenWorld.value()}
}

func (h Hint) value() *bool {
	if h == 0 {
		return nil
	}
	yes := h == Yes
	return &yes
}

// check reports which option the server would refuse, or nil.
func (o Options) check() error {
	if err := checkTitle(o.Title); err != nil {
		return fmt.Errorf("its title: %w", err)
	}
	for _, h := range []Hint{o.Annotations.ReadOnly, o.Annotations.Destructive, o.Annotations.Idempotent, o.Annotations.OpenWorld} {
		if h > No {
			return fmt.Errorf("an annotation is Hint(%d): use Yes or No, or leave it out", h)
		}
	}
	if o.Annotations.ReadOnly == Yes && o.Annotations.Destructive == Yes {
		return errors.New("it is both read-only and destructive: a tool that changes nothing destroys nothing; remove one")
	}
	if len(o.Icons) > maxIcons {
		return fmt.Errorf("it has %d icons; at most %d are allowed", len(o.Icons), maxIcons)
	}
	size := 0
	for i, icon := range o.Icons {
		if err := icon.check(); err != nil {
			return fmt.Errorf("icon %d: %w", i+1, err)
		}
		size += len(icon.Src)
	}
	if size > maxIconBytes {
		return fmt.Errorf("the Src of its icons have %d bytes together; at most %d are allowed: use smaller pictures, or https addresses", size, maxIconBytes)
	}
	return nil
}

func checkTitle(title string) error {
	n := utf8.RuneCountInString(title)
	switch {
	case title == "":
		return nil
	case !utf8.ValidString(title):
		return errors.New("it is not UTF-8")
	case n > maxTitle:
		return fmt.Errorf("%d characters are too many; at most %d are allowed: say the rest in the description", n, maxTitle)
	case strings.TrimSpace(title) == "":
		return errors.New("it is blank: leave it out, or name the tool in a few words")
	case strings.IndexFunc(title, controls) >= 0:
		return errors.New("it has line breaks, or other characters that control how text is shown: write it on one line, without them")
	}
	return nil
}

// controls reports whether a character controls how others are shown: a control character, a separator of lines, or one that
// turns the direction, with which a title could say something else than it seems to.
func controls(r rune) bool {
	return unicode.IsControl(r) || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
