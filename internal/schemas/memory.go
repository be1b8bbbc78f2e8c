package schemas

import (
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// These are how much memory a check takes, in bytes. While a slice grows, the old and the new array exist together, so an added value or edit counts
// more than twice.
const (
	perByte     = 4 // the text, the copy with filled-in defaults, and the copy of a compared value
	perValue    = 64
	perMember   = 40  // its name in the list of its object's names
	perAdded    = 160 // a value that is added to the tree
	perEdit     = 200 // including the written number
	perMark     = 24
	perMarks    = 256
	perCompared = 96
)

func needed(text string) int64 {
	return perByte*int64(len(text)) + perValue*int64(jsontree.MostValues(text)) + perMember*int64(strings.Count(text, ":"))
}
