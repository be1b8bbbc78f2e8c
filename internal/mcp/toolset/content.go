package toolset

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/schemas"
)

// These are the limits within which results are searched for files, and files become blocks of their own. A block repeats the media type and the
// place, which can be far larger than the file. Whatever exceeds a limit stays in the text.
const (
	maxValues  = 50_000 // approximate; each takes 64 bytes during the search, which are not counted as used memory
	maxBlobs   = 1000
	maxPointer = 512 // bytes
)

// A BlockKind is the type of a content block, as the protocol writes it.
type BlockKind string

// The kinds of blocks.
const (
	Text     BlockKind = "text"
	Image    BlockKind = "image"
	Audio    BlockKind = "audio"
	Resource BlockKind = "resource"
)

// A Block is a part of a result's content.
type Block struct {
	Kind BlockKind
	// Text is the content of a text block, or of a resource that is text.
	Text string
	// Data is the content of an image, of audio, or of a resource that is not text.
	Data []byte
	// MIMEType is the media type, as the tool's author wrote it. Text blocks have none.
	MIMEType string
	// URI names a resource. It can't be fetched: the resource is in the block.
	URI string
}

// A blob is a string in a result that the schema declares to be a file in base64.
type blob struct {
	kind     BlockKind
	data     string // in base64
	mimeType string
	pointer  string // JSON pointer to its place in the result
}

// A blobFinder takes the blobs out of a result.
type blobFinder struct {
	text  string
	tree  jsontree.Tree
	blobs []blob
	rest  []byte // the result up to done, with a placeholder for each blob
	done  int
}

// takeBlobs returns the blobs of a result, and the result with a placeholder for each blob, or nil if the whole result is a file. A string that is
// not base64 stays where it is, since clients refuse the whole answer if a block is wrong.
func takeBlobs(result []byte, media *schemas.Media) (blobs []blob, rest []byte) {
	if bytes.Count(result, []byte(","))+bytes.Count(result, []byte("["))+bytes.Count(result, []byte("{")) > maxValues {
		return nil, result
	}
	f := blobFinder{text: string(result)}
	if f.tree.Read(f.text) != nil { // it has a duplicate name, or is nested too deeply
		return nil, result
	}
	f.find(0, media, "")
	switch {
	case len(f.blobs) == 0:
		return nil, result
	case f.blobs[0].pointer == "":
		return f.blobs, nil
	}
	return f.blobs, append(f.rest, f.text[f.done:]...)
}

func (f *blobFinder) find(i int32, m *schemas.Media, pointer string) {
	if len(f.blobs) == maxBlobs || len(pointer) > maxPointer {
		return
	}
	v := &f.tree.Values[i]
	switch {
	case v.Kind == jsontree.String && m.Type != "":
		f.take(v, m.Type, pointer)
	case v.Kind == jsontree.Array && m.Items != nil:
		for c := v.First; c != 0; c = f.tree.Values[c].Next {
			f.find(c, m.Items, pointer+"/"+strconv.Itoa(int(f.tree.Values[c].Index)))
		}
	case v.Kind == jsontree.Object && m.Members != nil:
		for c := v.First; c != 0; c = f.tree.Values[c].Next {
			key := f.tree.Values[c].Key
			if member := m.Members[key]; member != nil {
				f.find(c, member, pointer+"/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"))
			}
		}
	}
}

// take takes one blob out.
func (f *blobFinder) take(v *jsontree.Value, mimeType, pointer string) {
	data := v.Decoded()
	if strings.ContainsAny(data, "\r\n") { // base64 with line breaks, as in mail
		data = strings.NewReplacer("\r", "", "\n", "").Replace(data)
	}
	size, ok := decodedSize(data)
	if !ok || size == 0 {
		return
	}
	kind := Resource
	switch main, _, _ := strings.Cut(mimeType, "/"); strings.ToLower(main) {
	case "image":
		kind = Image
	case "audio":
		kind = Audio
	}
	f.blobs = append(f.blobs, blob{kind, data, mimeType, pointer})
	f.rest = append(f.rest, f.text[f.done:v.Start]...)
	f.rest = appendString(f.rest, "("+mimeType+", "+strconv.Itoa(size)+" bytes)")
	f.done = int(v.Start) + len(v.Text)
}

// decodedSize returns how many bytes a padded base64 text decodes to, or false if it is not base64.
func decodedSize(text string) (size int, ok bool) {
	digits := strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	if len(text)%4 != 0 {
		return 0, false
	}
	for i := range len(digits) {
		switch c := digits[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/':
		default:
			return 0, false
		}
	}
	return len(digits) * 3 / 4, true
}

// uri returns the URI of a blob in the result of a tool.
func (f *blob) uri(tool string) string {
	u := url.URL{Scheme: "toolsrv", OmitHost: true, Path: tool, Fragment: f.pointer}
	return u.String()
}

// text returns the content of a resource that is text.
func (f *blob) text() (text string, ok bool) {
	if f.kind != Resource || len(f.mimeType) < 5 || !strings.EqualFold(f.mimeType[:5], "text/") {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(f.data)
	return string(data), err == nil && utf8.Valid(data)
}

// block returns a blob as a block of its own.
func (f *blob) block(tool string) Block {
	b := Block{Kind: f.kind, MIMEType: f.mimeType}
	if f.kind == Resource {
		b.URI = f.uri(tool)
	}
	if text, ok := f.text(); ok {
		b.Text = text
	} else {
		b.Data, _ = base64.StdEncoding.DecodeString(f.data) // decodedSize has checked each character
	}
	return b
}

// append appends a blob as a block.
func (f *blob) append(dst []byte, tool string) []byte {
	if f.kind == Resource {
		dst = appendString(append(dst, `{"type":"resource","resource":{"uri":`...), f.uri(tool))
		dst = appendString(append(dst, `,"mimeType":`...), f.mimeType)
		if text, ok := f.text(); ok {
			dst = appendString(append(dst, `,"text":`...), text)
		} else {
			dst = appendString(append(dst, `,"blob":`...), f.data)
		}
		return append(dst, "}}"...)
	}
	dst = append(append(append(dst, `{"type":"`...), f.kind...), `","data":`...)
	dst = appendString(dst, f.data)
	dst = appendString(append(dst, `,"mimeType":`...), f.mimeType)
	return append(dst, '}')
}
