package toolset

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

const (
	// maxBlocks is how many blocks a lexicon has at most, since a search looks into each.
	maxBlocks = 12
	// fewWords is the size up to which a lexicon is never checked for stale words.
	fewWords = 10_000
)

// A lexicon numbers the words of a set's tools. When tools change, the words of other tools keep their numbers, so that making the index of a
// generation costs only what is new in it.
type lexicon struct {
	words   words
	size    int32
	most    int32 // the size at which to check how many words are still in use
	scratch scratch
}

// words are the words of a lexicon at one moment. They never change.
type words struct{ blocks []block }

// A block holds words that were added together.
type block struct {
	first  int32
	places map[string]int32
	text   string  // the words, one per line
	starts []int32 // where words start in text
}

func (w words) size() int {
	if len(w.blocks) == 0 {
		return 0
	}
	last := &w.blocks[len(w.blocks)-1]
	return int(last.first) + len(last.starts)
}

// numbered are the words of a tool in a lexicon.
type numbered struct {
	in   *lexicon
	list []indexed
}

// scratch is memory that is reused from tool to tool.
type scratch struct {
	word   []byte
	tree   jsontree.Tree
	places map[int32]int // indexes of words in list
	list   []indexed
	added  map[string]int32 // words that are in no block yet
	order  []string         // the same, by number
}

// isStale reports whether most of the words are in none of the entries. It rarely counts them.
func (l *lexicon) isStale(entries []*entry) bool {
	if l.size < l.most || l.size < fewWords {
		return false
	}
	used, n := make([]bool, l.size), int32(0)
	for _, e := range entries {
		if e.words.in != l {
			continue
		}
		for _, w := range e.words.list {
			if !used[w.word] {
				used[w.word] = true
				n++
			}
		}
	}
	l.most = 2 * n
	return n < l.size/2
}

// index numbers the words of entries that are new to the lexicon.
func (l *lexicon) index(entries []*entry) (words, [][]indexed) {
	tools := make([][]indexed, len(entries))
	l.scratch = scratch{places: map[int32]int{}, added: map[string]int32{}}
	for i, e := range entries {
		if e.words.in != l {
			e.words = numbered{l, l.number(e)}
		}
		tools[i] = e.words.list
	}
	l.add(l.scratch.order)
	l.scratch = scratch{}
	return l.words, tools
}

// number returns the words of a tool, each with its total weight in all texts of the tool.
func (l *lexicon) number(e *entry) []indexed {
	s := &l.scratch
	clear(s.places)
	s.list = s.list[:0]
	add := func(text string, weight float32) {
		s.word = eachWord(text, s.word, func(word []byte) {
			if len(s.list) >= entryWords {
				if n, ok := l.known(word); !ok {
					return
				} else if _, ok := s.places[n]; !ok {
					return
				}
			}
			n := l.numberOf(word)
			place, ok := s.places[n]
			if !ok {
				s.places[n] = len(s.list)
				s.list = append(s.list, indexed{n, weight})
				return
			}
			w := &s.list[place]
			w.weight = max(w.weight, weight) + min(w.weight, weight)/4
		})
	}
	add(e.tool.Name, nameWeight)
	add(e.tool.Title, titleWeight)
	add(e.tool.Namespace, namespaceWeight)
	add(e.tool.Description, descriptionWeight)
	tree := &s.tree
	if tree.Read(string(e.tool.Parameters.JSON())) == nil {
		for i := range tree.Values {
			v := &tree.Values[i]
			switch {
			case v.Parent >= 0 && tree.Values[v.Parent].Key == "properties":
				add(v.Key, parameterWeight)
			case v.Kind == jsontree.String && (v.Key == "description" || v.Key == "title"):
				add(v.Decoded(), parameterWeight)
			}
			if len(s.list) >= entryWords {
				break
			}
		}
	}
	return slices.Clone(s.list)
}

// known returns the number of a word.
func (l *lexicon) known(word []byte) (int32, bool) {
	if n, ok := l.scratch.added[string(word)]; ok {
		return n, true
	}
	for i := range l.words.blocks {
		b := &l.words.blocks[i]
		if n, ok := b.places[string(word)]; ok {
			return b.first + n, true
		}
	}
	return 0, false
}

// numberOf returns the number of a word. A new word gets one.
func (l *lexicon) numberOf(word []byte) int32 {
	if n, ok := l.known(word); ok {
		return n
	}
	text, n := string(word), l.size
	l.scratch.added[text] = n
	l.scratch.order = append(l.scratch.order, text)
	l.size++
	return n
}

// add makes a block of new words. If there are many blocks already, it merges all of them into one.
func (l *lexicon) add(list []string) {
	if len(list) == 0 {
		return
	}
	blocks := slices.Clone(l.words.blocks)
	if len(blocks) == maxBlocks {
		var all []string
		for i := range blocks {
			for word := range strings.Lines(blocks[i].text) {
				all = append(all, word[:len(word)-1])
			}
		}
		blocks, list = nil, append(all, list...)
	}
	b := block{places: make(map[string]int32, len(list)), starts: make([]int32, len(list))}
	if len(blocks) > 0 {
		b.first = int32(words{blocks}.size())
	}
	var text strings.Builder
	for i, word := range list {
		b.starts[i] = int32(text.Len())
		text.WriteString(word + "\n")
	}
	b.text = text.String()
	for i, start := range b.starts { // substrings of text, so that no word is kept twice
		b.places[b.text[start:int(start)+len(list[i])]] = int32(i)
	}
	l.words = words{append(blocks, b)}
}

// match calls found for the words that fit a word of the query, and says how well they fit. "image" fits "images", and the other way round. found
// may be called more than once for a word.
func (w words) match(asked string, found func(word int32, how fit)) {
	for i := range w.blocks {
		w.blocks[i].match(asked, found)
	}
}

func (b *block) match(asked string, found func(word int32, how fit)) {
	if place, ok := b.places[asked]; ok {
		found(b.first+place, fitsWhole)
	}
	if utf8.RuneCountInString(asked) < 3 && asked[0] < utf8.RuneSelf {
		return
	}
	for end := len(asked) - 1; end >= max(3, len(asked)-3); end-- {
		if place, ok := b.places[asked[:end]]; ok {
			found(b.first+place, fitsBegin)
		}
	}
	for at, place := 0, 0; ; {
		n := strings.Index(b.text[at:], asked)
		if n < 0 {
			return
		}
		at += n
		for place+1 < len(b.starts) && int(b.starts[place+1]) <= at {
			place++
		}
		how := fitsPart
		if int(b.starts[place]) == at || asked[0] >= utf8.RuneSelf { // a script that may not separate its words
			how = fitsBegin
		}
		found(b.first+int32(place), how)
		at += len(asked)
	}
}

// wordsOf returns the words of a text.
func wordsOf(text string) (words []string) {
	eachWord(text, nil, func(word []byte) { words = append(words, string(word)) })
	return words
}

// eachWord calls found with the words of a text in lower case. A word is a run of letters and digits, and camel case is split at the capitals.
// eachWord uses the memory of word, and returns it.
func eachWord(text string, word []byte, found func(word []byte)) []byte {
	size := 0
	end := func() {
		if len(word) > 0 {
			found(word)
		}
		word, size = word[:0], 0
	}
	word = word[:0]
	last := rune(0)
	for _, r := range text {
		switch {
		case !isOfWord(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(last):
			end()
			fallthrough
		default:
			if size += utf8.RuneLen(r); size <= wordBytes {
				word = utf8.AppendRune(word, unicode.ToLower(r))
			}
		}
		last = r
	}
	end()
	return word
}

func isOfWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
