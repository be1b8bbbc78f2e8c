package oci_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/oci"
)

func TestRange(t *testing.T) {
	t.Parallel()
	tags := []string{"latest", "1", "1.2", "1.1.9", "1.2.0", "v1.2.10", "1.2.9", "1.2.11-rc1", "1.2.012", "1.3.0", "2.0.0", "1.2.0.1", "1.+2.99", "1.2.99999999999", ""}
	for text, want := range map[string]string{
		"~1": "1.3.0", "~1.2": "v1.2.10", "~1.2.5": "v1.2.10", "~1.2.11": "the newest outside it is 2.0.0", "~3": "the newest outside it is 2.0.0", "~1.1": "1.1.9", "~2.0.0": "2.0.0",
		"1.2": "is not a range", "~": "is not a range", "~v1": "is not a range", "~x": "is not a range", "~1.2.3.4": "is not a range", "~01": "is not a range", "~~1": "is not a range", "~-1": "is not a range",
	} {
		r, err := oci.ParseRange(text)
		got := ""
		if err == nil {
			got, err = r.Newest(tags)
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || err == nil && got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	r, err := oci.ParseRange("~1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Newest([]string{"latest", "1.2"}); err == nil || !strings.Contains(err.Error(), "tags with three numbers count") {
		t.Errorf("got %v", err)
	}
	sorted := slices.SortedStableFunc(slices.Values([]string{"1.10.0", "b", "1.2", "1.9.0", "a", "v2"}), oci.CompareTags)
	if got := strings.Join(sorted, " "); got != "b a 1.2 1.9.0 1.10.0 v2" {
		t.Errorf("got %s", got)
	}
}
