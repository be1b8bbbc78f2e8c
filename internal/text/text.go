// Package text holds what messages do with text that somebody else wrote: shorten it, and guess what was meant.
package text

import (
	"strings"
	"unicode/utf8"
)

// Clip returns s where it has at most most bytes, and otherwise its beginning and an ellipsis of three bytes, together no
// longer than most. It cuts between characters. s need not be UTF-8; most is at least 3.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most - 3
	// A character has four bytes at most: what goes further back is no UTF-8 and is cut where it is.
	for back := 0; back < utf8.UTFMax && back <= end; back++ {
		if utf8.RuneStart(s[end-back]) {
			end -= back
			break
		}
	}
	return s[:end] + "..."
}

// Short is Clip for a foreign name in a message: to 80 bytes.
func Short(s string) string { return Clip(s, 80) }

// maxTyped is from how many bytes on a name is near to none, so that the work of a guess is bounded.
const maxTyped = 256

// Nearest returns the name of known that a mistyped one was meant to be, or "" where none is near: up to three letters may be
// missing, added, changed or swapped, and no more than a third of them. Case, and - for _, count for nothing.
// The first of several that are equally near wins. The work is len(typed) times the bytes of all names, at most.
func Nearest(typed string, known []string) string {
	if len(typed) > maxTyped {
		return ""
	}
	typed = plain(typed)
	best, least := "", 1+max(1, min(len(typed)/3, 3))
	for _, name := range known {
		if gap := len(name) - len(typed); gap >= least || -gap >= least {
			continue
		}
		if n := distance(typed, plain(name)); n < least && n < len(name) {
			best, least = name, n
		}
	}
	return best
}

var dashes = strings.NewReplacer("-", "_")

func plain(name string) string { return strings.ToLower(dashes.Replace(name)) }

// distance returns how many bytes must be inserted, removed, replaced or swapped with the next to make b of a: the
// optimal string alignment distance.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
