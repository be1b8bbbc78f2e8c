package schemas

import (
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// What a check takes of memory, in bytes. What grows has its old place beside its new one for a moment, so that a value or an edit that
// is added counts more than twice.
const (
	perByte     = 4 // the text, the copy with what is filled in, and the copy of a value that is compared
	perValue    = 64
	perMember   = 40  // its name, among those of its object
	perAdded    = 160 // a value that is added to the tree
	perEdit     = 200 // with the number that is written out
	perMark     = 24
	perMarks    = 256
	perCompared = 96
)

func needed(text string) int64 {
	return perByte*int64(len(text)) + perValue*int64(jsontree.MostValues(text)) + perMember*int64(strings.Count(text, ":"))
}
