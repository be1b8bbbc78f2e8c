package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

// ask calls the tool with a text, and with other arguments if there are any.
func ask(t testing.TB, text string, others map[string]any) stats {
	t.Helper()
	arguments := map[string]any{"text": text}
	for name, value := range others {
		arguments[name] = value
	}
	in, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result, err := toolsrvtest.Call(t, module, "stats", string(in))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var out stats
	if err := json.Unmarshal([]byte(result), &out); err != nil {
		t.Fatalf("%q: result %s: %v", text, result, err)
	}
	return out
}

func TestCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       int
	}{
		{"ASCII", "abc d", 5},
		{"umlaut", "ä", 1},
		{"umlaut of two", "a\u0308", 1},
		{"many accents", "Z\u0351\u036b\u0343", 1},
		{"accent alone", "\u0308", 1},
		{"skin tone", "👍🏽", 1},
		{"family", "👨‍👩‍👧‍👦", 1},
		{"heart", "❤️", 1},
		{"flags", "🇩🇪🇫🇷", 2},
		{"three flag letters", "🇩🇪🇫", 2},
		{"flag after text", "a🇩🇪", 2},
		{"flag of a region", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", 1},
		{"Hangul", "한국", 2},
		{"Hangul jamo", "\u1112\u1161\u11ab\u1100\u116e\u11a8", 2},
		{"Devanagari", "नि", 1},
		{"line ends", "a\r\nb\n\rc", 6},
		{"NUL", "\x00\x00", 2},
		{"Chinese", "你好", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, test.text, nil).Characters; got != test.want {
				t.Errorf("%+q: got %d, want %d", test.text, got, test.want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string // in the order of the alphabet
	}{
		{"plain", "one two", []string{"one", "two"}},
		{"nothing", " \t\n .,;- ", nil},
		{"apostrophe", "Don't ‘quote’ don’t", []string{"don't", "don't", "quote"}},
		{"hyphen", "well-known - end-", []string{"end", "well-known"}},
		{"numbers", "3.14 1,000.5 1. 2,x", []string{"1", "1,000.5", "2", "3.14", "x"}},
		{"points", "e.g. a.b", []string{"a", "b", "e", "g"}},
		{"snake", "snake_case _x", []string{"snake_case", "x"}},
		{"case", "Ärger ÄRGER", []string{"ärger", "ärger"}},
		{"accents of two", "cafe\u0301 CAFE\u0301", []string{"cafe\u0301", "cafe\u0301"}},
		{"Chinese", "你好 world。", []string{"world", "你", "好"}},
		{"Japanese and Latin", "GoとRust", []string{"go", "rust", "と"}},
		{"emoji", "👍🏽 ok 👍🏽", []string{"ok"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out := ask(t, test.text, nil)
			var got []string
			for _, u := range out.TopWords {
				for range u.Count {
					got = append(got, u.Word)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) || out.Words != len(test.want) {
				t.Errorf("%q: got %q and %d words, want %q", test.text, got, out.Words, test.want)
			}
		})
	}
}

func TestStructure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text                   string
		sentences, paragraphs, lines int
	}{
		{"empty", "", 0, 0, 0},
		{"blank", " \n\n ", 0, 0, 3},
		{"heading", "A heading", 1, 1, 1},
		{"two", "One. Two", 2, 1, 1},
		{"marks", "What?! Yes... no… \"Well.\" (Good.) End!", 5, 1, 1},
		{"a small letter continues the sentence", "Some, e.g. this one, i.e. me.", 1, 1, 1},
		{"address", "See example.com. Version 1.2 is out.", 2, 1, 1},
		{"marks only", "... !", 0, 1, 1},
		{"Chinese", "你好。再见！", 2, 1, 1},
		{"lines", "a\nb\r\nc\rd", 1, 1, 4},
		{"last line ends", "a\nb\n", 1, 1, 2},
		{"paragraphs", "One\n\nTwo\n \n\nThree.", 3, 3, 6},
		{"paragraph separator", "One\u2029Two", 2, 2, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out := ask(t, test.text, nil)
			if out.Sentences != test.sentences || out.Paragraphs != test.paragraphs || out.Lines != test.lines {
				t.Errorf("%q: got %d sentences, %d paragraphs, %d lines, want %d, %d, %d", test.text,
					out.Sentences, out.Paragraphs, out.Lines, test.sentences, test.paragraphs, test.lines)
			}
		})
	}
}

func TestTopWords(t *testing.T) {
	t.Parallel()
	const text = "The cat and the dog and the bird"
	tests := []struct {
		name   string
		others map[string]any
		want   []usage
	}{
		{"all", nil, []usage{{"the", 3}, {"and", 2}, {"bird", 1}, {"cat", 1}, {"dog", 1}}},
		{"top", map[string]any{"top": 2}, []usage{{"the", 3}, {"and", 2}}},
		{"none", map[string]any{"top": 0}, []usage{}},
		{"ignore", map[string]any{"ignore": []string{"THE", "and"}}, []usage{{"bird", 1}, {"cat", 1}, {"dog", 1}}},
		{"length", map[string]any{"min_length": 4}, []usage{{"bird", 1}}},
		{"too long", map[string]any{"min_length": 100}, []usage{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, text, test.others).TopWords; !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReadingTime(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 400)
	for wpm, want := range map[float64]int{200: 120, 10: 2400, 2000: 12} {
		if got := ask(t, text, map[string]any{"words_per_minute": wpm}).ReadingSeconds; got != want {
			t.Errorf("%v words per minute: got %d s, want %d s", wpm, got, want)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{
		`{}`, `{"text": 1}`, `{"text": null}`, `{"text": "a", "top": -1}`, `{"text": "a", "top": 101}`, `{"text": "a", "top": 1.5}`,
		`{"text": "a", "words_per_minute": 0}`, `{"text": "a", "ignore": "the"}`, `{"text": "a", "txt": "b"}`,
	} {
		if got, err := toolsrvtest.Call(t, module, "stats", arguments); err == nil {
			t.Errorf("%s: got %s, want an error", arguments, got)
		}
	}
}

// FuzzStats counts arbitrary texts: the counts are consistent.
func FuzzStats(f *testing.F) {
	for _, seed := range []string{"", "To be, or not to be.", "👨‍👩‍👧‍👦🇩🇪", "a\r\n\r\nb", "你好。", "\u200d\u0308\u1161", strings.Repeat("a'", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\ufffd")
		out := ask(t, text, nil)
		runes := utf8.RuneCountInString(text)
		if out.Characters > runes || out.Characters == 0 && runes > 0 || out.Words > runes || out.UniqueWords > out.Words ||
			out.Sentences > out.Words || out.Paragraphs > out.Lines || out.Letters > out.Characters {
			t.Errorf("%q: got %+v", text, out)
		}
	})
}

func BenchmarkStats(b *testing.B) {
	in := query{Text: strings.Repeat("To be, or not to be: that is the question. ", 1500), Top: 10, WordsPerMinute: 200}
	b.SetBytes(int64(len(in.Text)))
	for b.Loop() {
		if _, err := describe(nil, in); err != nil {
			b.Fatal(err)
		}
	}
}
