package main

import "unicode"

// A splitter splits a text into the characters that readers see. It follows the rules of UAX 29 that matter in practice: marks, joiners, skin tones,
// flags, Hangul syllables and CR LF.
type splitter struct {
	before rune
	flags  int // regional indicators in a row
}

// begins reports whether r begins a character. Otherwise it continues the one before.
func (s *splitter) begins(r rune) bool {
	before := s.before
	s.before = r
	if !isFlagLetter(r) {
		s.flags = 0
	}
	switch {
	case before == 0:
		s.flags += count(isFlagLetter(r))
		return true
	case before == '\r' && r == '\n':
		return false
	case isControl(before) || isControl(r):
		s.flags += count(isFlagLetter(r))
		return true
	case extends(r):
		return false
	case before == joiner && !unicode.IsLetter(r):
		return false // the parts of a family
	case isFlagLetter(r):
		s.flags++
		return s.flags%2 == 1 // two make a flag
	case isVowelJamo(r) || isFinalJamo(r):
		return !isLeadJamo(before) && !isVowelJamo(before) && !isFinalJamo(before) && !isHangul(before)
	case isLeadJamo(r):
		return !isLeadJamo(before)
	}
	return true
}

const joiner = '\u200d'

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// extends reports whether r is drawn onto the character before it.
func extends(r rune) bool {
	return r == joiner || r == '\u200c' ||
		r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc, unicode.Other_Grapheme_Extend) ||
		r >= 0x1F3FB && r <= 0x1F3FF || // skin tones
		r >= 0xE0020 && r <= 0xE007F // the letters of the flags of regions
}

func isControl(r rune) bool {
	return r < ' ' || r >= 0x7F && r < 0xA0 || r == '\u2028' || r == '\u2029'
}

func isFlagLetter(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func isLeadJamo(r rune) bool { return r >= 0x1100 && r <= 0x115F }

func isVowelJamo(r rune) bool { return r >= 0x1160 && r <= 0x11A7 }

func isFinalJamo(r rune) bool { return r >= 0x11A8 && r <= 0x11FF }

func isHangul(r rune) bool { return r >= 0xAC00 && r <= 0xD7A3 }
