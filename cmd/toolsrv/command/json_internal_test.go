package command

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// TestEscapeJSON checks that JSON for a terminal is the same value, without control characters.
func TestEscapeJSON(t *testing.T) {
	t.Parallel()
	const text = "{\"a\":\r\n\t[\"\u009b31m\", \"\u202e\x7f\", \"\U000e0001 ü ツ 😀\", \"\\u001b\"]}\n"
	const want = `{"a":` + " \n\t" + `["\u009b31m", "\u202e\u007f", "\udb40\udc01 ü ツ 😀", "\u001b"]}` + "\n"
	got := escapeJSON([]byte(text))
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var before, after any
	if err := errors.Join(json.Unmarshal([]byte(text), &before), json.Unmarshal(got, &after)); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("got %q, want %q, %v", after, before, err)
	}
}
