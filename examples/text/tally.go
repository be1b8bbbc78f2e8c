package main

import (
	"strings"
	"unicode"
)

// A tally counts a text in one pass.
type tally struct {
	characters, letters, lines, paragraphs, sentences int

	words          map[string]int // in small letters
	total          int            // words
	wordCharacters int            // in all words together

	splitter splitter
	blank    bool // the line so far is empty
	within   bool // a paragraph has begun
	ended    bool // by a mark that may end a sentence, if a space follows and no small letter
	spaced   bool // a space has followed
	spoken   bool // the sentence has a word
}

// read counts text.
func (c *tally) read(text string) {
	c.blank = true
	var word []rune
	size := 0 // characters in the word
	runes := []rune(text)
	for i, r := range runes {
		begins := c.splitter.begins(r)
		c.characters += count(begins)
		var next rune
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case inWord(r) || len(word) > 0 && (extends(r) || r == '_'):
			single := standsAlone(r)
			if single {
				c.add(&word, &size)
			}
			c.letters += count(begins)
			word, size = append(word, r), size+count(begins)
			c.sentenceGoesOn(r)
			if single && !extends(next) {
				c.add(&word, &size)
			}
		case len(word) > 0 && joins(word[len(word)-1], r, next):
			word, size = append(word, r), size+1
		default:
			c.add(&word, &size)
			c.mark(r)
		}
		c.line(r, next)
	}
	c.add(&word, &size)
	c.endSentence()
	if len(runes) > 0 && runes[len(runes)-1] != '\n' && runes[len(runes)-1] != '\r' {
		c.lines++
	}
}

// add counts the word that has been collected, if there is one.
func (c *tally) add(word *[]rune, size *int) {
	if len(*word) > 0 {
		c.words[fold(string(*word))]++
		c.total++
		c.wordCharacters += *size
	}
	*word, *size = (*word)[:0], 0
}

// line counts lines and paragraphs.
func (c *tally) line(r, next rune) {
	switch {
	case r == '\r' && next == '\n':
	case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
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

// mark looks at what stands between words for the end of a sentence.
func (c *tally) mark(r rune) {
	switch {
	case strings.ContainsRune("。！？｡", r):
		c.endSentence()
	case strings.ContainsRune(".!?…", r):
		c.ended, c.spaced = true, false
	case unicode.IsSpace(r):
		c.spaced = true
	case c.ended && !c.spaced && !unicode.In(r, unicode.Pe, unicode.Pf, unicode.Pi) && r != '"' && r != '\'':
		c.ended = false // a mark within something, such as an address
	}
}

// sentenceGoesOn takes r, the letter or digit of a word, for the sentence: the next one where a mark and a space came
// before and r is not small.
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

// joins reports whether r is part of a word that before ends so far and next goes on: an apostrophe or a hyphen, and
// between digits a point or a comma.
func joins(before, r, next rune) bool {
	if r == '.' || r == ',' {
		return unicode.IsDigit(before) && unicode.IsDigit(next)
	}
	return strings.ContainsRune("'’-‐", r) && inWord(next) && !standsAlone(next)
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
