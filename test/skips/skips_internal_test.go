package main

import (
	"slices"
	"strings"
	"testing"
)

const module = `"Package":"github.com/toolsrv/toolsrv/`

// events is the output of go test -json for a package that passes, with a skipped test, and for one that fails.
const events = `{"Action":"start",` + module + `a"}
{"Action":"output",` + module + `a","Test":"TestFine","Output":"    a_test.go:3: nothing to see\n"}
{"Action":"pass",` + module + `a","Test":"TestFine"}
{"Action":"output",` + module + `a","Test":"TestRoot","Output":"=== RUN   TestRoot\n"}
{"Action":"output",` + module + `a","Test":"TestRoot","Output":"    a_test.go:7: root may read everything\n"}
{"Action":"output",` + module + `a","Test":"TestRoot","Output":"--- SKIP: TestRoot (0.00s)\n"}
{"Action":"skip",` + module + `a","Test":"TestRoot"}
{"Action":"output",` + module + `a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass",` + module + `a"}
{"ImportPath":"b","Action":"build-output","Output":"b.go:1: wrong\n"}
{"Action":"output",` + module + `b","Test":"TestBad","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"fail",` + module + `b","Test":"TestBad"}
{"Action":"output",` + module + `b","Output":"FAIL\tb\t0.1s\n"}
{"Action":"fail",` + module + `b"}
`

func TestFollow(t *testing.T) {
	t.Parallel()
	var out, file strings.Builder
	if err := follow(strings.NewReader(events), &out, &file, "root"); err != nil {
		t.Fatal(err)
	}
	const want = "ok  \ta\t0.1s\nb.go:1: wrong\n    b_test.go:9: got 1, want 2\nFAIL\tb\t0.1s\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	for _, c := range []struct {
		name, more, want string
	}{
		{"nowhere", "", "1 TESTS WERE NOT RUN AT ALL:\n  skipped: root may read everything\n    a TestRoot (root)\n"},
		{"elsewhere", `{"Run":"nobody",` + module + `a","Test":"TestRoot"}`,
			"NO TEST WAS SKIPPED EVERYWHERE\n1 were skipped in one run and passed in another:\n  skipped: root may read everything\n    a TestRoot (root)\n"},
	} {
		var summary strings.Builder
		if err := show(&summary, strings.NewReader(file.String()+c.more)); err != nil || !strings.Contains(summary.String(), c.want) {
			t.Errorf("%s: got %q, %v, want %q in it", c.name, summary.String(), err, c.want)
		}
	}
}

// TestRest checks that tests that were skipped in a run, or that checked less in it, are run again. For a subtest, the whole
// test is run again.
func TestRest(t *testing.T) {
	t.Parallel()
	const saw = `{"Action":"attr",` + module + `a","Test":"TestFast","Key":"race","Value":"less"}
{"Action":"pass",` + module + `a","Test":"TestFast"}
{"Action":"attr",` + module + `a","Test":"TestAll/large","Key":"race","Value":"less"}
{"Action":"pass",` + module + `a","Test":"TestAll/large"}
{"Action":"pass",` + module + `a","Test":"TestAll/small"}
{"Action":"pass",` + module + `a","Test":"TestAll"}
{"Action":"attr",` + module + `a","Test":"TestOther","Key":"of","Value":"another kind"}
{"Action":"pass",` + module + `a","Test":"TestOther"}
{"Action":"skip",` + module + `b","Test":"TestBuild/go"}
{"Action":"pass",` + module + `b","Test":"TestBuild"}
{"Action":"pass",` + module + `c","Test":"TestWhole"}
`
	var out, file strings.Builder
	if err := follow(strings.NewReader(saw), &out, &file, "race"); err != nil {
		t.Fatal(err)
	}
	tests, packages, err := rest(strings.NewReader(file.String()+`{"Run":"test",`+module+`d","Test":"TestElsewhere","Skipped":true}`), "race")
	if want := []string{"TestAll", "TestBuild", "TestFast"}; err != nil || !slices.Equal(tests, want) {
		t.Errorf("got the tests %q, %v, want %q", tests, err, want)
	}
	if want := []string{"github.com/toolsrv/toolsrv/a", "github.com/toolsrv/toolsrv/b"}; !slices.Equal(packages, want) {
		t.Errorf("got the packages %q, want %q", packages, want)
	}
}
