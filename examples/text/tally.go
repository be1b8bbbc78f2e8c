package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A tally counts a text in one pass.
type tally struct {
	characters, letters, lines, paragraphs, sentences int

	words          map[string]int // in small letters
	total          int            // words
	wordCharacters int            // in all words together

	splitter splitter
	begun    bool // a word has begun
	start    int  // of the word, in bytes
	size     int  // of the word so far, in characters
	last     rune // the last character of the word so far
	blank    bool // the line so far is empty
	within   bool // a paragraph has begun
	ended    bool // a mark has come that ends the sentence, if a space follows and then no small letter
	spaced   bool // a space has followed
	spoken   bool // the sentence has a word
}

// read counts text.
func (c *tally) read(text string) {
	c.blank = true
	before := rune('\n')
	for i, width := 0, 0; i < len(text); i += width {
		var r, next rune
		r, width = utf8.DecodeRuneInString(text[i:])
		if i+width < len(text) {
			next, _ = utf8.DecodeRuneInString(text[i+width:])
		}
		begins := c.splitter.begins(r)
		c.characters += count(begins)
		switch {
		case inWord(r) || c.begun && (r == '_' || extends(r)):
			single := standsAlone(r)
			if single {
				c.endWord(text[:i])
			}
			c.letters += count(begins)
			c.goOn(i, r, begins)
			c.sentenceGoesOn(r)
			if single && !extends(next) {
				c.endWord(text[:i+width])
			}
		case c.begun && joins(c.last, r, next):
			c.goOn(i, r, true)
		default:
			c.endWord(text[:i])
			c.mark(r)
		}
		c.line(r, next)
		before = r
	}
	c.endWord(text)
	c.endSentence()
	c.lines += count(!breaksLine(before))
}

// goOn adds r, which is at i, to the word, or begins one with it.
func (c *tally) goOn(i int, r rune, begins bool) {
	if !c.begun {
		c.begun, c.start = true, i
	}
	c.size += count(begins)
	c.last = r
}

// endWord counts the word that ends where text does, if there is one.
func (c *tally) endWord(text string) {
	if c.begun {
		c.words[fold(text[c.start:])]++
		c.total++
		c.wordCharacters += c.size
	}
	c.begun, c.size = false, 0
}

// line counts lines and paragraphs.
func (c *tally) line(r, next rune) {
	switch {
	case r == '\r' && next == '\n':
	case breaksLine(r):
		c.lines++
		if c.blank || r == '\u2029' {
			c.within = false
			c.endSentence()
		}
		c.blank = true
	case !unicode.IsSpace(r):
		c.blank = false
		if !c.within {
			c.within = true
			c.paragraphs++
		}
	}
}

// breaksLine reports whether r ends a line, alone or as the first character of CR LF.
func breaksLine(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

// mark looks for the end of a sentence in a character between words.
func (c *tally) mark(r rune) {
	switch {
	case r == '.' || r == '!' || r == '?' || r == '…':
		c.ended, c.spaced = true, false
	case r == '。' || r == '！' || r == '？' || r == '｡':
		c.endSentence()
	case unicode.IsSpace(r):
		c.spaced = true
	case c.ended && !c.spaced && !unicode.In(r, unicode.Pe, unicode.Pf, unicode.Pi) && r != '"' && r != '\'':
		c.ended = false // a mark within something, such as an address
	}
}

// sentenceGoesOn counts r, a letter or digit in a word, as a part of a sentence. If a mark and a space came before r, and r is not a small letter,
// it begins the next sentence.
func (c *tally) sentenceGoesOn(r rune) {
	if c.ended && c.spaced && !unicode.IsLower(r) {
		c.endSentence()
	}
	c.ended, c.spaced, c.spoken = false, false, true
}

// endSentence counts the sentence that has begun, if it has a word.
func (c *tally) endSentence() {
	c.sentences += count(c.spoken)
	c.ended, c.spaced, c.spoken = false, false, false
}

// inWord reports whether r is part of a word wherever it stands.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// joins reports whether r stands inside a word, between the characters before and next: an apostrophe or a hyphen, and between digits a
// point or a comma.
func joins(before, r, next rune) bool {
	if r == '.' || r == ',' {
		return unicode.IsDigit(before) && unicode.IsDigit(next)
	}
	return (r == '\'' || r == '’' || r == '-' || r == '‐') && inWord(next) && !standsAlone(next)
}

// standsAlone reports whether r is of a script that puts no spaces between words.
func standsAlone(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// fold returns a word in the form in which words are compared.
func fold(word string) string {
	return strings.ReplaceAll(strings.ToLower(word), "’", "'")
}

// length returns the number of characters of a word.
func length(word string) int {
	var s splitter
	n := 0
	for _, r := range word {
		n += count(s.begins(r))
	}
	return n
}
