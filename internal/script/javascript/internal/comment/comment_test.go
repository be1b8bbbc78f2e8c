package comment_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/comment"
)

var update = flag.Bool("update", false, "write testdata/*.json again")

// TestRead compares what is read of testdata/*.js and *.ts with the JSON beside them.
func TestRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.[jt]s")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, script := range files {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			for _, c := range comment.Read(filepath.Base(script), string(source)) {
				if err := e.Encode(c); err != nil {
					t.Fatal(err)
				}
			}
			if *update {
				if err := os.WriteFile(script+".json", got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(script + ".json")
			if err != nil {
				t.Fatal(err)
			}
			gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
			for i := range max(len(gotLines), len(wantLines)) {
				if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
					t.Fatalf("line %d: got\n%s\nwant\n%s", i+1, strings.Join(gotLines[min(i, len(gotLines)):], "\n"), strings.Join(wantLines[min(i, len(wantLines)):], "\n"))
				}
			}
		})
	}
}

// The time for any text grows only linearly with it, and so does the size of the answer.
func TestReadOfHostileFiles(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	chain := func(line string) string {
		var out strings.Builder
		for i := 0; out.Len() < size; i++ {
			out.WriteString(strings.NewReplacer("NEXT", fmt.Sprint(i+1), "THIS", fmt.Sprint(i)).Replace(line))
		}
		return out.String()
	}
	for name, source := range map[string]string{
		"many functions":   chain("/** F. */ export function fTHIS(a: string) {}\n"),
		"types in a chain": chain("type TTHIS = { a: TNEXT; b: TNEXT };\n") + "/** F. */ export function f(a: T0) {}",
		"interfaces":       chain("interface TNEXT extends TTHIS, TTHIS { a: TTHIS }\n") + "interface T0 {}\n/** F. */ export function f(a: T900) {}",
		"many members":     "/** F. */ export function f(a: {" + chain("mTHIS: string; ") + "}) {}",
		"many literals":    "/** F. */ export function f(a: " + chain("\"THIS\" | ") + "1) {}",
		"deep":             "/** F. */ export function f(a: " + strings.Repeat("{a:", size/3) + ") {}",
		"deep lists":       "/** F. */ export function f(a: " + strings.Repeat("[", size) + ") {}",
		"one type by many": "type A = { a: string; b: [" + strings.Repeat("A, ", 10000) + "A] };\n" + chain("/** F. */ export function fTHIS(a: A) {}\n"),
		"templates":        "/** F. */ export const a = " + strings.Repeat("`${", size/3),
		"comments":         strings.Repeat("/** @typedef {{a: A}} A */\n", size/28) + "/** F.\n" + chain(" * @param {A} pTHIS\n") + "*/ export function f(p0) {}",
		"tags":             "/**\n" + strings.Repeat(" * @param {", size/11) + "*/ export function f() {}",
		"members of one":   "/**\n * @param {Object} a\n" + chain(" * @param {string} a.bTHIS\n") + "*/ export function f(a) {}",
		"defaults":         "/**\n * @param {Object} [a=" + strings.Repeat("[", size) + "] */ export function f(a) {}",
		"lines":            "/**" + strings.Repeat("\n", size) + "*/ export function f() {}",
		"parameters":       "/** F. */ export function f({" + chain("aTHIS, ") + "}, " + chain("bTHIS, ") + ") {}",
		"uses of a text":   "interface A { /** " + chain("THIS") + " */ a: string }\n" + chain("/** F. */ export function fTHIS(a: A) {}\n"),
		"type parameters":  chain("/** F. */ export const fTHIS = <"),
		"links":            "/** " + strings.Repeat("{@link ", size/7) + "*/ export function f() {}",
		"open texts":       "/** F. */ export const a = " + strings.Repeat(`\'`, size/2),
		"open patterns":    "/** F. */ export const a = " + strings.Repeat("[/", size/2),
		"lists of lists":   "/** @param {string" + strings.Repeat("[]", size/2) + "} a */ export function f(a) {}",
		"lists of types":   chain("type TTHIS = TNEXT"+strings.Repeat("[]", 90)+";\n") + "/** F. */ export function f(a: T0) {}",
		"on one line":      chain("/** F. */ export function fTHIS(a: string) {}; "),
		"members of many":  "/**\n" + chain(" * @param {Object} a"+strings.Repeat(".a", 300)+"\n") + "*/ export function f(a) {}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			written, err := json.Marshal(comment.Read("a.ts", source))
			if err != nil || len(written) > 64*size {
				t.Errorf("%d bytes, %v", len(written), err)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// FuzzRead reads arbitrary text: Read must end, in time that grows with the text, and return places in it.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.[jt]s")
	for _, script := range files {
		source, err := os.ReadFile(script)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source))
	}
	for _, source := range []string{"", "`", "`${", "/**", "/** */", "export function", "export const a = tool(", "export {", "/** @param {", "/** @param {{} [", "type A =", "interface A", "'\\", "}", "export const a = tool({run", "/a[/", "export default", "interface A extends A {} /** */ export function f(a: A) {}", "type A = A | A[]; /** */ export function f(a: A) {}"} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, c := range comment.Read("a.ts", source) {
			if c.Place.Line < 1 || c.Place.Column < 1 {
				t.Errorf("%+v", c.Place)
			}
			if _, err := json.Marshal(c); err != nil {
				t.Error(err)
			}
		}
	})
}
