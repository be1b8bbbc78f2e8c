package openapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/web"
)

// mediaOf returns the media type of a tool's result if its schema declares a file in base64, or "". For a JSON file it returns "", since a client
// that accepts JSON may want either of the two forms.
func mediaOf(result *schemas.Schema) string {
	media := result.Media()
	if media == nil || media.Type == "" {
		return ""
	}
	kind, parameters, err := mime.ParseMediaType(media.Type)
	if err != nil || kind == "application/json" {
		return ""
	}
	return mime.FormatMediaType(kind, parameters) // "" if a header can't hold it
}

// sendResult answers with the result of a tool. If the tool has a media type, the file itself is sent, provided that Accept prefers it to JSON and
// that the result is a base64 string, as the schema promises.
func (x *exchange) sendResult(result []byte, mediaType string) {
	if mediaType == "" {
		x.Send(http.StatusOK, result)
		return
	}
	h := x.Header()
	h["Vary"] = append(slices.Clip(h["Vary"]), "Accept") // all requests may share the existing values
	if !web.Prefers(x.Request().Header["Accept"], mediaType) {
		x.Send(http.StatusOK, result)
		return
	}
	f, ok := blobOf(result)
	if !ok {
		x.Send(http.StatusOK, result)
		return
	}
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(f.size))
	h.Set("Cache-Control", "no-store")
	// A tool may return an HTML page or an SVG with scripts. In a browser these would run with this server's origin.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	x.WriteHeader(http.StatusOK)
	// If a write fails, the client is gone, so there is nobody left to tell.
	_ = f.decode(func(part []byte) error {
		_, err := x.Write(part)
		return err
	})
}

// A blob is the content of a base64 result. It is decoded part by part, because a call's memory is counted, and the door must not overwrite the
// result.
type blob struct {
	text []byte // base64
	size int    // size of the decoded content
}

// blobPart is how much base64 is decoded at a time, in bytes: a multiple of 4.
const blobPart = 8 << 10

// blobOf returns the blob in a result, if the result is a string in base64.
func blobOf(result []byte) (f blob, ok bool) {
	text := bytes.Trim(result, " \t\r\n")
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return blob{}, false
	}
	if bytes.IndexByte(text, '\\') >= 0 { // no base64 digit needs an escape, but a tool may write "\/"
		var whole string
		if json.Unmarshal(text, &whole) != nil {
			return blob{}, false
		}
		f.text = []byte(whole)
	} else {
		f.text = text[1 : len(text)-1]
	}
	err := f.decode(func(part []byte) error {
		f.size += len(part)
		return nil
	})
	return f, err == nil
}

// decode passes the content of the blob to write, part by part, until that fails.
func (f blob) decode(write func(part []byte) error) error {
	var buffer [blobPart / 4 * 3]byte
	for text := f.text; len(text) > 0; {
		part := text[:min(len(text), blobPart)]
		text = text[len(part):]
		n, err := base64.StdEncoding.Decode(buffer[:], part)
		if err == nil && len(text) > 0 && n < len(buffer) {
			err = base64.CorruptInputError(len(f.text) - len(text)) // padding or a line break before the end
		}
		if err == nil {
			err = write(buffer[:n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
