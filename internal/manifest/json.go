package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/text"
)

// readJSON reads text as one JSON value that every reader understands in the same way. So it refuses invalid syntax or UTF-8, a repeated member, an
// escaped half of a character, and endless nesting.
func readJSON(manifest []byte) (*jsontree.Tree, error) {
	tree := &jsontree.Tree{}
	err := tree.Read(string(manifest))
	wrong, ok := errors.AsType[*jsontree.SyntaxError](err)
	if !ok {
		return tree, err
	}
	switch place := position(manifest, wrong.Offset); wrong.Msg {
	case jsontree.InvalidUTF8:
		return nil, fmt.Errorf("%s: the byte %#x is not UTF-8", place, manifest[wrong.Offset])
	case jsontree.LoneSurrogate:
		return nil, fmt.Errorf("%s: %s is half of a character: escape both halves, or write the character itself", place, manifest[wrong.Offset:wrong.Offset+len(`\ud83d`)])
	case jsontree.Duplicate:
		return nil, fmt.Errorf("%s appears twice: remove one", joinPlace(placeOf(tree, wrong.In), wrong.Name))
	case jsontree.TooDeep:
		return nil, fmt.Errorf("%s...: objects and arrays nest deeper than %d: flatten the schema, with $defs and $ref", text.Short(placeOf(tree, wrong.In)), jsontree.MaxDepth)
	}
	// The error of encoding/json names the wrong character.
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(manifest, new(json.RawMessage))); ok {
		return nil, fmt.Errorf("%s: %w", position(manifest, int(syntax.Offset)-1), syntax)
	}
	return nil, fmt.Errorf("%s: %s", position(manifest, wrong.Offset), wrong.Msg)
}

// position returns an offset in text as a line and a column, both counted from 1.
func position(text []byte, offset int) string {
	before := text[:max(0, min(offset, len(text)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1)
}

// placeOf returns where a value is, such as "tools[1].name".
func placeOf(tree *jsontree.Tree, at int32) string {
	v := &tree.Values[at]
	switch {
	case v.Parent < 0:
		return ""
	case tree.Values[v.Parent].Kind == jsontree.Array:
		return fmt.Sprintf("%s[%d]", placeOf(tree, v.Parent), v.Index)
	}
	return joinPlace(placeOf(tree, v.Parent), v.Key)
}

// joinPlace returns the place of a member of an object.
func joinPlace(place, member string) string {
	plain := member != "" && len(member) <= naming.Max && !strings.ContainsFunc(member, func(r rune) bool {
		return r != '_' && r != '$' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	switch {
	case !plain:
		return place + fmt.Sprintf("[%q]", text.Short(member))
	case place == "":
		return member
	}
	return place + "." + member
}
