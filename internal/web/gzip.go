package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

const (
	// minPacked is the size of a document from which on it is sent compressed: a smaller one fits a packet or two.
	minPacked = 2 << 10
	// packLevel takes 0.1 s for a list of 10,000 tools, half of what gzip's default does, and 10 to 20 % more bytes.
	packLevel = 3
)

// A packed is a document compressed with gzip.
type packed struct {
	form
	body []byte
}

// pack returns a document compressed, or nil if that does not help, or may not be kept.
func pack(d *Document, level int, keep func(bytes int) bool) *packed {
	var body bytes.Buffer
	w, err := gzip.NewWriterLevel(&body, level)
	if err != nil {
		return nil // the level is valid
	}
	if _, err = d.content.WriteTo(w); err != nil || w.Close() != nil || body.Len() >= d.content.Size() || keep != nil && !keep(body.Len()) {
		return nil
	}
	return &packed{newForm(packedTag(d.etag), body.Len()), bytes.Clone(body.Bytes())}
}

// ServePacked has a handler answer, and compresses its answer where the client prefers that, unless it is an error. What is made anew for each request
// is compressed at the fastest level: the default of package gzip takes three times as long for a tenth less.
func ServePacked(x *Exchange, h http.Handler) {
	x.Header().Add("Vary", "Accept-Encoding")
	if !takesGzip(x.Request().Header.Values("Accept-Encoding")) {
		h.ServeHTTP(x, x.Request())
		return
	}
	z, err := gzip.NewWriterLevel(x, gzip.BestSpeed)
	if err != nil {
		x.Fail(err)
		return
	}
	p := &packing{ResponseWriter: x, named: x.mux.fixed.gzip, to: z}
	h.ServeHTTP(p, x.Request())
	p.end()
}

// A packing compresses what is written of an answer.
type packing struct {
	http.ResponseWriter
	named []string
	to    *gzip.Writer
	begun bool
	plain bool // it is an error
}

func (p *packing) WriteHeader(status int) {
	if !p.begun {
		p.begun, p.plain = true, status != http.StatusOK
		if !p.plain {
			p.Header()["Content-Encoding"] = p.named
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *packing) Write(b []byte) (int, error) {
	if !p.begun {
		p.WriteHeader(http.StatusOK)
	}
	if p.plain {
		return p.ResponseWriter.Write(b)
	}
	return p.to.Write(b)
}

// end writes what is left. Where that fails the client is gone.
func (p *packing) end() {
	if p.begun && !p.plain {
		_ = p.to.Close()
	}
}

// packedTag returns the tag of the compressed form, which is another one because the bytes differ (RFC 9110, section 8.8.3.3).
func packedTag(etag string) string { return strings.TrimSuffix(etag, `"`) + `-gzip"` }

// takesGzip reports whether Accept-Encoding fields prefer gzip (RFC 9110, section 12.5.3). It takes one pass and no memory. A part that is
// not understood counts as missing.
func takesGzip(fields []string) bool {
	const unsaid = -1
	packed, plain, others := unsaid, unsaid, unsaid
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			coding, parameter, weighted := strings.Cut(part, ";")
			weight := fullWeight
			if weighted {
				if weight = weightOf(parameter); weight < 0 {
					continue
				}
			}
			switch coding = strings.Trim(coding, " \t"); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				packed = weight
			case strings.EqualFold(coding, "identity"):
				plain = weight
			case coding == "*":
				others = weight
			}
		}
	}
	if packed == unsaid {
		packed = max(0, others)
	}
	return packed > 0 && packed >= plain
}

// fullWeight is the weight of 1, in thousandths.
const fullWeight = 1000

// weightOf returns the weight that a parameter "q=0.5" says, in thousandths, or -1.
func weightOf(parameter string) int {
	name, value, ok := strings.Cut(strings.Trim(parameter, " \t"), "=")
	if !ok || !strings.EqualFold(name, "q") {
		return -1
	}
	return thousandths(value)
}

// thousandths returns a weight such as "0.5" in thousandths, or -1.
func thousandths(weight string) int {
	whole, fraction, _ := strings.Cut(weight, ".")
	if len(whole) != 1 || len(fraction) > 3 {
		return -1
	}
	n, err := strconv.ParseUint(whole+(fraction + "000")[:3], 10, 16)
	if err != nil || n > fullWeight {
		return -1
	}
	return int(n)
}
