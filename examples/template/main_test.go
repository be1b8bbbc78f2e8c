package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

const data = `{"name": "Ada", "n": 3, "big": 1234567, "half": 0.5, "large": 12345678.5, "list": ["b", "a", 10, 9], "empty": [], "nil": null, "yes": true,
	"item": {"price": 3.5, "title": "green tea"}, "items": [{"t": "x"}, {"t": "y"}], "html": "<b>"}`

func ask(t *testing.T, text, others string) (string, error) {
	t.Helper()
	quoted, _ := json.Marshal(text)
	result, err := toolsrvtest.Call(t, module, "render", `{"template": `+string(quoted)+`, "data": `+data+others+`}`)
	if err != nil {
		return "", err
	}
	var out string
	if err := json.Unmarshal([]byte(result), &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

func TestRender(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, template, others, want string }{
		{"text", "a & <b>", ``, "a & <b>"},
		{"value", "{{.name}}{{.html}}", ``, "Ada<b>"},
		{"numbers", "{{.n}} {{.big}} {{.half}} {{.large}}", ``, "3 1234567 0.5 12345678.5"},
		{"nested", "{{.item.price}} {{(index .items 1).t}}", ``, "3.5 y"},
		{"range", "{{range $i, $e := .items}}{{$i}}{{$e.t}} {{end}}{{range .empty}}x{{else}}none{{end}}", ``, "0x 1y none"},
		{"break", "{{range .list}}{{if eq . 10}}{{break}}{{end}}{{.}}{{end}}", ``, "ba"},
		{"template", `{{define "x"}}[{{.}}]{{end}}{{template "x" .name}}`, ``, "[Ada]"},
		{"missing is nothing", "a{{.nobody}}b{{.nobody.there}}", `,"missing":"empty"`, "ab"},
		{"null is nothing", "[{{.nil}}]{{with .nil}}x{{end}}{{$x := .nil}}{{$x}}{{printf \"%s%v\" .nil .nil}}", ``, "[]"},
		{"text that looks missing", "{{print \"<no value>\"}}<no value>{{.nobody}}", `,"missing":"empty"`, "<no value><no value>"},
		{"printf of numbers as text", `{{printf "%s %q %x" .n .half .n}}`, ``, `3 "0.5" 3`},
		{"round a large number", "{{round 15 1e300}}", ``, "1" + strings.Repeat("0", 300)},
		{"null", "{{default \"none\" .nil}}", ``, "none"},
		{"compare", "{{gt .half 0}}{{lt .n 3.5}}{{ge .n 3}}{{le .n 2}}{{eq .n 3.0}}{{ne .name \"Ada\"}}{{eq .name \"x\" \"Ada\"}}{{lt \"a\" \"b\"}}", ``, "truetruetruefalsetruefalsetruetrue"},
		{"calculate", "{{add .n .half}} {{sub 1 2}} {{mul .n 2}} {{div 1 4}} {{round 2 3.14159}} {{div 10 5}} {{10 | div 5}}", ``, "3.5 -1 6 0.25 3.14 2 0.5"},
		{"printf", `{{printf "%.2f" .n}} {{printf "%d|%5d|%-3d|" .n .n .n}} {{printf "%s is %v, 100%%" .name .half}} {{.item.price | printf "%.1f"}}`, ``, "3.00 3|    3|3  | Ada is 0.5, 100% 3.5"},
		{"text functions", `{{upper .name}} {{lower .name}} {{title "ada king-noel"}} {{trim " x "}} {{replace "a" "o" .name}} {{.name | contains "d"}}{{starts_with "A" .name}}{{ends_with "A" .name}}`, ``, "ADA ada Ada King-Noel x Ado truetruefalse"},
		{"list functions", `{{join "+" .list}} {{join "+" (sort .list)}} {{first .list}}{{last .list}}{{first .empty}} {{join "" (reverse .list)}} {{join "," (keys .item)}} {{len .list}} {{join "|" (split "," "a,b")}} {{last "xyz"}}`, ``, "b+a+10+9 9+10+a+b b9 910ab price,title 4 a|b z"},
		{"json", "{{json .item}} {{json .html}} {{json .big}} {{json .large}}", ``, `{"price":3.5,"title":"green tea"} "<b>" 1234567 1.23456785e+07`},
		{"html", "{{html .html}} {{urlquery \"a b&c\"}}", ``, "&lt;b&gt; a+b%26c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, test.template, test.others)
			if err != nil || got != test.want {
				t.Errorf("%s: got %q, %v, want %q", test.template, got, err, test.want)
			}
		})
	}
}

// TestSlips has mistakes of agents, and templates that would never end or fill the memory.
func TestSlips(t *testing.T) {
	t.Parallel()
	double := strings.Repeat("{{$s = print $s $s}}", 60)
	tests := []struct{ name, template, others, want string }{
		{"not closed", "a\n{{.name", ``, "Line 2: unclosed action"},
		{"no end", "{{if .n}}", ``, "Line 1: unexpected EOF"},
		{"function", "\n\n{{shout .name}}", ``, `Line 3: There is no function "shout"`},
		{"no point", "Dear {{name}}", ``, "with a point before it: {{.name}}"},
		{"hyphen", "{{.a-b}}", ``, `{{index . "the-name"}}`},
		{"printf %d of a fraction", `{{printf "%d" .half}}`, ``, "needs a whole number, and 0.5 is not one"},
		{"printf with too many values", `{{printf "%s" .name .n}}`, ``, "needs 1 values and was given 2"},
		{"printf of a type", `{{printf "%T" .half}}`, ``, "there is no %T"},
		{"printf %t without a boolean", `{{printf "%t" .n}}`, ``, "needs true or false"},
		{"missing", "\n{{.nobody}}", ``, `Line 2: The data have no "nobody": pass it, or "missing": "empty".`},
		{"missing within", "{{range .items}}{{.price}}{{end}}", ``, `The data have no "price"`},
		{"not an object", "{{.name.first}}", ``, "Line 1: The value before .first is not an object"},
		{"compare", "{{gt .name 3}}", ``, `"Ada" and "3" can't be compared: take two numbers or two texts.`},
		{"add", "{{add .name 3}}", ``, `Line 1: "Ada" is not a number.`},
		{"division by zero", "{{div 1 0}}", ``, "division by zero"},
		{"printf %d of a text", `{{printf "%d" .name}}`, ``, `needs a number, and "Ada" is not one`},
		{"printf with too few values", `{{printf "%s%s" .name}}`, ``, `needs more values`},
		{"printf with a large width", `{{printf "%1000000d" .n}}`, ``, "a width of 1000"},
		{"printf with a star", `{{printf "%*d" 5 .n}}`, ``, "does not take the format"},
		{"no list", `{{first .n}}`, ``, `"3" is not a list`},
		{"loop of loops", "\n{{range .list}}" + strings.Repeat("{{range $.list}}", 12) + "x" + strings.Repeat("{{end}}", 13), ``, "more than 100000 steps"},
		{"loop over a number", "{{range 1000000000}}{{end}}", ``, "more than 100000 steps"},
		{"endless recursion", `{{define "x"}}{{template "x"}}{{template "x"}}{{end}}{{template "x"}}`, ``, "more than 50 levels deep"},
		{"doubling", `{{$s := "x"}}` + double + `{{$s}}`, ``, "longer than max_bytes"},
		{"doubling by replace", `{{$s := "xx"}}` + strings.Repeat(`{{$s = replace "x" "xxxx" $s}}`, 60), ``, "longer than max_bytes"},
		{"doubling by js", `{{$s := "\\"}}` + strings.Repeat(`{{$s = js $s}}`, 60), ``, "longer than max_bytes"},
		{"much sorting", "{{$l := split \"\" (printf \"%1000d\" 1)}}{{range 100000}}{{$x := sort $l}}{{end}}", ``, "more than 100000 steps"},
		{"long work", "{{$s := join \"\" (split \"\" (printf \"%1000d\" 1))}}" + strings.Repeat("{{$s = print $s $s}}", 9) + "{{range 1000}}{{$x := upper $s}}{{end}}", ``, "more than 100000 steps"},
		{"long", "{{range .list}}xxxx{{end}}", `,"max_bytes":10`, "longer than max_bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, test.template, test.others)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%.100s: got %.100q, %v, want an error with %q", test.template, got, err, test.want)
			}
		})
	}
}

// FuzzRender renders any template with any data: a text or an error, soon.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{"{{.a}}", "{{range .list}}{{.}}{{end}}", `{{printf "%x" 1}}`, "{{template \"a\"}}", "{{define \"a\"}}", "{{slice .name 1 2}}", "{{call .f}}", "{{index .list 9}}", "{{_step}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var values map[string]any
		if err := json.Unmarshal([]byte(data), &values); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		defer func() {
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("took %v, want less", took)
			}
		}()
		if out, err := render(nil, query{Template: text, Data: values, Missing: "error", MaxBytes: 1000}); err == nil && len(out) > 1000 {
			t.Errorf("got %d bytes, want 1000 at most", len(out))
		}
	})
}
