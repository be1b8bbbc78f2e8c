package text

import "strings"

// ShellQuote returns a word as a shell takes it: as it is, or in quotation marks.
func ShellQuote(word string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-", r)
	}
	if !strings.ContainsFunc(word, odd) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
