package schemas

import (
	"math"
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

// Need returns how many bytes of memory a check of a body takes with most schemas. Few need more, and they need it for what they fill in,
// or to remember what they have looked at.
func (*Schema) Need(body []byte) int64 { return littleMemory/16 + needed(string(body)) }

func needed(text string) int64 {
	return perByte*int64(len(text)) + perValue*int64(jsontree.MostValues(text)) + perMember*int64(strings.Count(text, ":"))
}

// take takes memory. Where there is too little left, it ends the check: what is given back on the way out does not count.
func (r *run) take(bytes int64) bool {
	if bytes > r.memory {
		r.memory, r.work = math.MinInt64/2, -1
		return false
	}
	r.memory -= bytes
	return true
}

// mayRead takes the memory that it needs to read a text, without a look at the text where it is small.
func (r *run) mayRead(text string) bool {
	if most := int64(perByte+perValue+perMember) * int64(len(text)+1); most < littleMemory/2 && r.memory >= littleMemory {
		return r.take(most)
	}
	return r.take(needed(text))
}
