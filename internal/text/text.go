// Package text has functions for messages: they shorten and escape foreign text, guess which name was meant, and read and write sizes.
package text

import "unicode/utf8"

// Prefix returns the longest beginning of s that has no more than most bytes and ends between characters. s need not be UTF-8.
func Prefix[T string | []byte](s T, most int) T {
	if len(s) <= most {
		return s
	}
	// A character has four bytes at most: a longer sequence is not UTF-8, and is cut anywhere.
	for back := 0; back < utf8.UTFMax && back <= most; back++ {
		if utf8.RuneStart(s[most-back]) {
			return s[:most-back]
		}
	}
	return s[:most]
}

// Clip returns s if it has no more than most bytes, and otherwise its beginning and an ellipsis of three bytes, together no more than most bytes.
// It cuts between characters. s need not be UTF-8; most is at least 3.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Prefix(s, most-3) + "..."
}

// ShortDigest returns the first 12 digits of a digest, which identify a file in the log.
func ShortDigest(digest string) string { return digest[:min(12, len(digest))] }

// Short is Clip for a foreign name in a message: to 80 bytes.
func Short(s string) string { return Clip(s, 80) }
