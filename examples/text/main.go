// Command text is a module with a tool that counts what is in a text.
package main

import (
	"cmp"
	"math"
	"slices"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type query struct {
	Text           string   `json:"text" description:"The text, in any language."`
	Top            int      `json:"top" default:"10" minimum:"0" maximum:"100" description:"How many of the words that are used most are listed."`
	MinLength      int      `json:"min_length" default:"1" minimum:"1" maximum:"100" description:"Words with fewer characters are not listed."`
	Ignore         []string `json:"ignore" default:"[]" maxItems:"1000" description:"Words that are not listed, in any case."`
	WordsPerMinute float64  `json:"words_per_minute" default:"200" minimum:"10" maximum:"2000" description:"How fast the reader reads."`
}

type stats struct {
	Characters        int     `json:"characters" description:"What a reader sees as one character."`
	Letters           int     `json:"letters" description:"Letters and digits among the characters."`
	Words             int     `json:"words"`
	UniqueWords       int     `json:"unique_words" description:"Different words, in any case."`
	Sentences         int     `json:"sentences"`
	Paragraphs        int     `json:"paragraphs"`
	Lines             int     `json:"lines"`
	AverageWordLength float64 `json:"average_word_length" description:"In characters, to two places."`
	ReadingSeconds    int     `json:"reading_seconds"`
	TopWords          []usage `json:"top_words" description:"The words that are used most, the most used first."`
}

type usage struct {
	Word  string `json:"word" description:"In small letters."`
	Count int    `json:"count"`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "text",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("stats", "Count the characters, words, sentences and paragraphs of a text, estimate how long reading it takes, and list the words that are used most.", describe,
			toolsrv.Example{
				Arguments: `{"text": "To be, or not to be.", "top": 2}`,
				Result: `{"characters": 20, "letters": 13, "words": 6, "unique_words": 4, "sentences": 1, "paragraphs": 1, "lines": 1,
					"average_word_length": 2.17, "reading_seconds": 2, "top_words": [{"word": "be", "count": 2}, {"word": "to", "count": 2}]}`,
			},
			toolsrv.Example{
				Arguments: `{"text": ""}`,
				Result: `{"characters": 0, "letters": 0, "words": 0, "unique_words": 0, "sentences": 0, "paragraphs": 0, "lines": 0,
					"average_word_length": 0, "reading_seconds": 0, "top_words": []}`,
			},
		).With(toolsrv.Options{Title: "Describe a text", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

func describe(_ *toolsrv.Call, in query) (stats, error) {
	count := tally{words: map[string]int{}}
	count.read(in.Text)
	out := stats{
		Characters:     count.characters,
		Letters:        count.letters,
		Words:          count.total,
		UniqueWords:    len(count.words),
		Sentences:      count.sentences,
		Paragraphs:     count.paragraphs,
		Lines:          count.lines,
		ReadingSeconds: int(math.Ceil(float64(count.total) / in.WordsPerMinute * 60)),
		TopWords:       top(count.words, in),
	}
	if count.total > 0 {
		out.AverageWordLength = math.Round(100*float64(count.wordCharacters)/float64(count.total)) / 100
	}
	return out, nil
}

// top returns the most frequent words; equally frequent ones are in alphabetical order. It keeps only the best so far, because sorting a hundred
// thousand words would take long.
func top(words map[string]int, in query) []usage {
	ignored := make(map[string]bool, len(in.Ignore))
	for _, word := range in.Ignore {
		ignored[fold(word)] = true
	}
	var best []usage
	for word, n := range words {
		entry := usage{word, n}
		if len(best) == in.Top && (in.Top == 0 || compare(entry, best[in.Top-1]) > 0) || ignored[word] || length(word) < in.MinLength {
			continue
		}
		place, _ := slices.BinarySearchFunc(best, entry, compare)
		if len(best) == in.Top {
			best = best[:in.Top-1]
		}
		best = slices.Insert(best, place, entry)
	}
	return best
}

// compare orders words by frequency.
func compare(a, b usage) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
}
