package config_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
)

var update = flag.Bool("update", false, "write docs/generated/keys.md")

// readers are the functions that return the tables of keys, each with the place of its keys. The comment above a key is the key's row on the page.
// It gives the meaning, preceded by the allowed values and " | " if the reader's errors don't say these well.
var readers = map[string]string{
	"tables": "", "read": "", "oidcTable": "auth.oidc.", "otlpTable": "otlp.", "secretsTable": "secrets.", "stateTable": "state.",
	"grantTable": "grant.", "Keys": "grant.", "sourceTables": "source.", "signers": "signer.", "pinTables": "pin.", "overrides": "override.",
	"tokens": "token.", "ruleTables": "rule.", "rateKeys": "rate.",
}

// lists are the tables of which a file may have several. begin is how such a table begins, and text is what the page says about it.
var lists = []struct{ heading, place, begin, text string }{
	{"Grants", "grant.", "[[grant]]\nmatch = '*'\n", "The keys of [`[[grant]]`](../configuration.md#grants)."},
	{"Sources", "source.", "[[source]]\n", "The keys of `[[source]]`: [directories](../configuration.md#several-directories), [registries](../configuration.md#tools-from-a-registry), [buckets](../configuration.md#tools-in-a-bucket)."},
	{"Signers", "signer.", "[[source]]\noci = 'ghcr.io/acme/csv'\n[[source.signer]]\n", "The keys of [`[[source.signer]]`](../configuration.md#signed-tools): a `key`, or the others together."},
	{"Pins", "pin.", "[[pin]]\n", "The keys of [`[[pin]]`](../configuration.md#pins)."},
	{"Tokens", "token.", "[[auth.token]]\n", "The keys of [`[[auth.token]]`](../configuration.md#auth)."},
	{"Rules", "rule.", "[[auth.oidc.rule]]\n", "The keys of [`[[auth.oidc.rule]]`](../configuration.md#openid-connect) and [`[[auth.certificate]]`](../configuration.md#client-certificates)."},
	{"Rates", "rate.", "[rates.default]\n", "The keys of [`[rates.default]` and `[rates.anonymous]`](../configuration.md#rates)."},
	{"Overrides", "override.", "[[override]]\n", "The keys of [`[[override]]`](../configuration.md#limits-for-some-tools), beside those of `[limits]`."},
}

// TestKeys checks the page of all keys against the code's comments, and against what Parse accepts.
func TestKeys(t *testing.T) {
	t.Parallel()
	said := comments(t)
	for _, e := range limittable.All() {
		means := e.Means
		if e.Zero != "" {
			means += "; 0 means " + e.Zero
		}
		said["limits."+e.Key] = means
	}
	row := func(begin, place, key string) string {
		text := said[place+key]
		if text == "" {
			t.Errorf("%s%s has no comment above the line with its reader: say there in one line what it is for", place, key)
		}
		allowed, meaning, ok := strings.Cut(text, " | ")
		if !ok {
			allowed, meaning = allowedBy(begin+key), text
		}
		delete(said, place+key)
		return allowed + " | " + meaning + " |\n"
	}
	var b strings.Builder
	b.WriteString("# Keys\n\nEvery key of the [configuration](../configuration.md), made from the code by `go test ./internal/config -run TestKeys$ -update`. A key with a dot stands in the table of that name. A change of one with ↻ takes effect at a [restart](../operations.md#restarting-without-losing-a-call) only.\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n")
	restart := tagged(reflect.TypeFor[config.Config]())
	for _, key := range knownKeys(t) {
		mark := ""
		if slices.Contains(restart, key) {
			mark = " ↻"
		}
		fmt.Fprintf(&b, "| `%s`%s | `%s` | %s", key, mark, defaultOf(t, key), row("", "", key))
	}
	for _, list := range lists {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | allowed | meaning |\n|---|---|---|\n", list.heading, list.text)
		for _, key := range keysOf(t, list.begin) {
			switch {
			case list.place == "override." && said["limits."+key] == "" && key != "match": // the key has its own row above
			case list.place != "rate." && slices.Contains([]string{"burst", "concurrent"}, key):
			case list.place != "rate." && key == "rate":
				b.WriteString("| `rate`, `burst`, `concurrent` | as of [rates](#rates) | how many calls may be made |\n")
			default:
				fmt.Fprintf(&b, "| `%s` | %s", key, row(list.begin, list.place, key))
			}
		}
	}
	for key := range said {
		t.Errorf("the comment for %s belongs to no key", key)
	}
	links := regexp.MustCompile(`\]\((#|[a-z-]+\.md)`)
	text := links.ReplaceAllStringFunc(b.String(), func(link string) string {
		target := strings.TrimPrefix(link, "](")
		if target == "#" {
			return "](../configuration.md#"
		}
		return "](../" + target
	})
	text = strings.ReplaceAll(text, "as of [rates](../configuration.md#rates)", "as of [rates](#rates)")
	const page = "../../docs/generated/keys.md"
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(have), "\r\n", "\n") != text {
		t.Error("docs/generated/keys.md is not what the code says: go test ./internal/config -run TestKeys$ -update writes it")
	}
}

// comments returns the comments above the keys of readers, by place and key.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := filepath.Glob("../../internal/capability/*/kind.go")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, file := range slices.Concat(files, kinds) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		above := map[int]string{} // comments by the line below each
		for _, c := range f.Comments {
			above[set.Position(c.End()).Line+1] = strings.Join(strings.Fields(c.Text()), " ")
		}
		note := func(place string, key ast.Expr, at token.Pos) {
			if name, text := stringOf(key), above[set.Position(at).Line]; name != "" && text != "" {
				said[place+name] = text
			}
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place, ok := readers[fn.Name.Name]
			if !ok || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					table, isTable := n.Value.(*ast.CompositeLit)
					if !isTable || table.Type != nil {
						note(place, n.Key, n.Pos())
						return true
					}
					name := stringOf(n.Key)
					for _, element := range table.Elts {
						pair := element.(*ast.KeyValueExpr)
						note(strings.TrimPrefix(name+".", "."), pair.Key, pair.Pos())
					}
					return false
				case *ast.AssignStmt:
					index, ok := n.Lhs[0].(*ast.IndexExpr)
					if !ok {
						return true
					}
					if outer, ok := index.X.(*ast.IndexExpr); ok { // d.known["rates"]["default"]
						note(stringOf(outer.Index)+".", index.Index, n.Pos())
					} else {
						note(place, index.Index, n.Pos())
					}
				}
				return true
			})
		}
	}
	return said
}

// stringOf returns the value of a string literal, or "".
func stringOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	said, _ := strconv.Unquote(literal.Value)
	return said
}

// keysOf returns the keys of a table. It gets them from the error of Parse for an unknown key. begin is how the table begins.
func keysOf(t *testing.T, begin string) []string {
	t.Helper()
	_, err := config.Parse([]byte(begin+"'?????????????' = 1"), "")
	if err == nil {
		t.Fatalf("%s: an unknown key causes no error", begin)
	}
	_, names, ok := strings.Cut(err.Error(), ": the keys are ")
	if !ok {
		t.Fatalf("%s: got %v", begin, err)
	}
	names, _, _ = strings.Cut(names, "\n")
	return strings.Split(names, ", ")
}

var (
	outOfRange = regexp.MustCompile(`is out of range: (\S+) to (\S+) is allowed`)
	tooLong    = regexp.MustCompile(`has \d+ bytes; at most (\d+) are allowed`)
	choice     = regexp.MustCompile(`: use ("[^"]+"(?:, "[^"]+")*) or ("[^"]+")(?:\n|$)`)
	wrongType  = regexp.MustCompile(`must be (.+), not a list`)
	quoted     = regexp.MustCompile(`"[^"]+"`)
)

// allowedBy returns the allowed values according to the errors for wrong ones.
func allowedBy(key string) string {
	try := func(value string) string {
		if _, err := config.Parse([]byte(key+" = "+value), ""); err != nil {
			return err.Error()
		}
		return ""
	}
	for _, wrong := range []string{"-1", `"-1s"`} {
		if m := outOfRange.FindStringSubmatch(try(wrong)); m != nil {
			least := strings.Replace(m[1], "0B", "0", 1)
			if least != "0" && try("0") == "" {
				least = "0, or " + least
			}
			return least + " to " + m[2]
		}
	}
	if m := tooLong.FindStringSubmatch(try(`"` + strings.Repeat("a", 70_000) + `"`)); m != nil {
		if try(`""`) == "" {
			return "up to " + m[1] + " bytes"
		}
		return "1 to " + m[1] + " bytes"
	}
	if m := choice.FindStringSubmatch(try(`"?"`)); m != nil {
		return quoted.ReplaceAllString(m[1]+", "+m[2], "`$0`")
	}
	if m := wrongType.FindStringSubmatch(try("[[]]")); m != nil {
		return quoted.ReplaceAllString(strings.NewReplacer("true or false", "`true`, `false`", "true, false or ", "`true`, `false`, ").Replace(m[1]), "`$0`")
	}
	return "?"
}

// defaultOf returns the value of a key that changes nothing, in the form of a file.
func defaultOf(t *testing.T, key string) string {
	t.Helper()
	want := config.Default()
	var values []string
	var collect func(v reflect.Value)
	collect = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				collect(v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				collect(v.Index(i))
			}
		case reflect.String:
			values = append(values, strconv.Quote(v.String()))
		case reflect.Int, reflect.Int64:
			if v.Int() != 0 {
				values = append(values, strconv.Quote(limittable.Bytes.Format(v.Int())), strconv.Quote(time.Duration(v.Int()).String()), strconv.FormatInt(v.Int(), 10))
			}
		}
	}
	collect(reflect.ValueOf(want).Elem())
	// Sizes come before numbers, and 0 is tried last, since for some keys it means another value.
	slices.SortStableFunc(values, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	for _, value := range slices.Concat([]string{`""`}, values, []string{`"denylist"`, `"auto"`, "1", "true", "false", "[]", "{}", "0"}) {
		if c, err := config.Parse([]byte(key+" = "+value), ""); err == nil && reflect.DeepEqual(c, want) {
			return value
		}
	}
	t.Errorf("no value of %s is its default", key)
	return ""
}
