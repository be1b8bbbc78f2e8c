package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

const (
	// minPacked is the smallest size of a document that is sent compressed: a smaller one fits into a packet or two.
	minPacked = 2 << 10
	// packLevel takes 0.1 s for a list of 10,000 tools, half as long as gzip's default level, and gives 10 to 20 % more bytes.
	packLevel = 3
)

// A packed is a document compressed with gzip.
type packed struct {
	form
	body []byte
}

// pack returns the compressed form of a document, or nil if it is no smaller or may not be kept.
func pack(d *Document, level int, keep func(bytes int) bool) *packed {
	var body bytes.Buffer
	w, err := gzip.NewWriterLevel(&body, level)
	if err != nil {
		return nil // can't happen, since the level is valid
	}
	if _, err = d.content.WriteTo(w); err != nil || w.Close() != nil || body.Len() >= d.content.Size() || keep != nil && !keep(body.Len()) {
		return nil
	}
	return &packed{newForm(packedTag(d.etag), body.Len()), bytes.Clone(body.Bytes())}
}

// ServePacked calls a handler and compresses its answer if the client prefers that, unless the answer is an error. Since the answer is made for each
// request, it uses the fastest level: the default of package gzip takes three times as long and saves a tenth.
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

// A packing compresses an answer as it is written.
type packing struct {
	http.ResponseWriter
	named []string
	to    *gzip.Writer
	begun bool
	plain bool // the answer is an error
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

// end writes what is left. If that fails, the client is gone.
func (p *packing) end() {
	if p.begun && !p.plain {
		_ = p.to.Close()
	}
}

// packedTag returns the tag of the compressed form, which differs because the bytes do (RFC 9110, section 8.8.3.3).
func packedTag(etag string) string { return strings.TrimSuffix(etag, `"`) + `-gzip"` }

// takesGzip reports whether Accept-Encoding fields prefer gzip (RFC 9110, section 12.5.3). It takes one pass and no memory. Parts that are not
// understood are ignored.
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

// fullWeight is a weight of 1, in thousandths.
const fullWeight = 1000

// weightOf returns the weight in a parameter such as "q=0.5", in thousandths, or -1.
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
