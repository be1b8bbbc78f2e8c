package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

func arguments(t *testing.T, pattern, text, others string) string {
	t.Helper()
	p, _ := json.Marshal(pattern)
	s, _ := json.Marshal(text)
	return `{"pattern":` + string(p) + `,"text":` + string(s) + others + `}`
}

func TestExtract(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, pattern, text, others, want string }{
		{"none", `x`, "abc", ``, `{"matches":[],"more":false}`},
		{"long repetition", `^\w{1,255}-(?:ab?){0,2}?-[a-c]{2,1000}$`, "x-a-cc", ``, `{"matches":[{"text":"x-a-cc","start":0,"end":6,"line":1,"groups":{}}],"more":false}`},
		{"least repetition", `a{1,3}?`, "aaa", `,"limit":1`, `{"matches":[{"text":"a","start":0,"end":1,"line":1,"groups":{}}],"more":true}`},
		{"group in a repetition", `(\d{1,3}\.){3}(\d{1,3})`, "10.20.30.40", ``, `{"matches":[{"text":"10.20.30.40","start":0,"end":11,"line":1,"groups":{"1":"30.","2":"40"}}],"more":false}`},
		{"no text", `x*`, "", ``, `{"matches":[{"text":"","start":0,"end":0,"line":1,"groups":{}}],"more":false}`},
		{"characters, not bytes", `c`, "ä😀\nc", ``, `{"matches":[{"text":"c","start":3,"end":4,"line":2,"groups":{}}],"more":false}`},
		{"groups", `(a)(?P<n>b)?`, "ac", ``, `{"matches":[{"text":"a","start":0,"end":1,"line":1,"groups":{"1":"a","n":null}}],"more":false}`},
		{"empty group", `a(b*)`, "a", ``, `{"matches":[{"text":"a","start":0,"end":1,"line":1,"groups":{"1":""}}],"more":false}`},
		{"the other syntax for a name", `(?<n>a)`, "a", ``, `{"matches":[{"text":"a","start":0,"end":1,"line":1,"groups":{"n":"a"}}],"more":false}`},
		{"one name for two groups", `(?P<n>a)|(?P<n>b)`, "b", ``, `{"matches":[{"text":"b","start":0,"end":1,"line":1,"groups":{"n":"b"}}],"more":false}`},
		{"limit", `a`, "aaa", `,"limit":1`, `{"matches":[{"text":"a","start":0,"end":1,"line":1,"groups":{}}],"more":true}`},
		{"case", `A`, "a", `,"ignore_case":true`, `{"matches":[{"text":"a","start":0,"end":1,"line":1,"groups":{}}],"more":false}`},
		{"lines", `^b$`, "a\nb\nc", `,"multiline":true`, `{"matches":[{"text":"b","start":2,"end":3,"line":2,"groups":{}}],"more":false}`},
		{"dot", `a.b`, "a\nb", `,"dot_all":true`, `{"matches":[{"text":"a\nb","start":0,"end":3,"line":1,"groups":{}}],"more":false}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, "extract", arguments(t, test.pattern, test.text, test.others))
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, pattern, text, others, want string }{
		{"none", `x`, "abc", `,"replacement":"y"`, `{"text":"abc","count":0}`},
		{"remove", `b`, "abcb", `,"replacement":""`, `{"text":"ac","count":2}`},
		{"names", `(?P<a>\w)(\w)`, "abcd", `,"replacement":"${2}${a}$0$$"`, `{"text":"baab$dccd$","count":2}`},
		{"literal", `\w`, "ab", `,"replacement":"$1","literal":true`, `{"text":"$1$1","count":2}`},
		{"empty matches", `x*`, "ab", `,"replacement":"-"`, `{"text":"-a-b-","count":3}`},
		{"group that took no part", `(a)|(b)`, "ab", `,"replacement":"[$1$2]"`, `{"text":"[a][b]","count":2}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, "replace", arguments(t, test.pattern, test.text, test.others))
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestSlips has mistakes of people who know other languages' expressions, and patterns that would fill the memory.
func TestSlips(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("a", 1<<20)
	tests := []struct{ name, tool, pattern, text, others, want string }{
		{"lookahead", "extract", `a(?=b)`, "", ``, "RE2 has no lookahead"},
		{"lookbehind", "extract", `(?<!a)b`, "", ``, "RE2 has no lookahead or lookbehind"},
		{"backreference", "extract", `(a)\1`, "", ``, "RE2 has no backreferences"},
		{"escape", "extract", `\y`, "", ``, "take a backslash"},
		{"star first", "extract", `*a`, "", ``, "Write \\ before a *"},
		{"parenthesis", "extract", `a)`, "", ``, "before a parenthesis"},
		{"open parenthesis", "extract", `(a`, "", ``, "before a parenthesis"},
		{"open bracket", "extract", `[a`, "", ``, `broken at "[a": missing closing ]`},
		{"repetition", "extract", `a{2000}`, "", ``, "up to 1000"},
		{"repetition of repetitions", "extract", `((a{100}){100}){100}`, "", ``, "The pattern is broken"},
		{"deep repetition of a group", "extract", `(a){0,900}`, "", ``, "too large for a sandbox"},
		{"deep groups", "extract", strings.Repeat("(", 400) + strings.Repeat(")", 400), "", ``, "too large for a sandbox"},
		{"many groups", "extract", strings.Repeat("()", 300) + "a", many, ``, "too large for a sandbox"},
		{"large", "extract", strings.Repeat("(?:a{30}){30}", 50), "", ``, "too large for a sandbox"},
		{"no such group", "replace", `(a)`, "a", `,"replacement":"$2"`, "refers to $2, and the pattern has no such group"},
		{"group and letter", "replace", `(a)`, "a", `,"replacement":"$1x"`, "write ${1}x"},
		{"no such name", "replace", `(a)`, "a", `,"replacement":"${b}"`, "refers to ${b}"},
		{"many long replacements", "replace", `a`, many, `,"replacement":"` + strings.Repeat("x", 1000) + `"`, "larger than 1500 KiB"},
		{"many long replacements, literally", "replace", `a`, many, `,"literal":true,"replacement":"` + strings.Repeat("$", 1000) + `"`, "larger than 1500 KiB"},
		{"many references", "replace", `(a*)`, many, `,"replacement":"$1$1$1"`, "larger than 1500 KiB"},
		{"nested groups", "extract", "((((a*))))", many, ``, "larger than 1500 KiB"},
		{"no pattern", "extract", ``, "a", ``, "pattern"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, test.tool, arguments(t, test.pattern, test.text, test.others))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %.100s, %v, want an error with %q", got, err, test.want)
			}
		})
	}
}

// FuzzCompile checks that the expression of compile finds the same matches as the one that Go compiles from the same pattern.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"a{1,3}", "(a|b){2,4}?c", `(?:\w{0,2}x){1,3}`, "(?i:a{0,2})b", "(?U)a{1,2}", "^a{2,3}$", "[^a]{0,2}", "(a){0,2}"} {
		f.Add(seed, "aAabbx\nab aaa")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		ours, err := (&search{Pattern: pattern}).compile()
		if err != nil || len(text) > 100 {
			return
		}
		theirs, err := regexp.Compile(pattern)
		if err != nil {
			t.Fatalf("%q: got an expression, and Go says %v", pattern, err)
		}
		got, want := ours.FindAllStringSubmatchIndex(text, -1), theirs.FindAllStringSubmatchIndex(text, -1)
		if !reflect.DeepEqual(got, want) || !slices.Equal(ours.SubexpNames(), theirs.SubexpNames()) {
			t.Errorf("%q (%s) in %q: got %v, want %v", pattern, ours, text, got, want)
		}
	})
}
