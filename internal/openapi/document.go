package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// documents are the documents that a principal sees: /tools and /openapi.json.
type documents struct{ tools, openapi *web.Document }

// A library holds the documents of a generation, by the scopes of their readers. They are built when somebody requests them, which does not happen in
// most generations.
type library struct {
	security security         // the credentials that the documents describe
	all      func() documents // the documents for principals that may call every tool
	most     func() int64     // how many bytes of compressed documents may be kept: the size of one uncompressed document
	kept     atomic.Int64     // how many bytes are kept
	building sync.Mutex       // one build at a time; it is taken before mu

	mu          sync.Mutex
	byScopes    map[string]documents
	byNamespace map[string]*web.Document // documents by scopes and namespace
	tools       int                      // how many tools all of these documents have together
}

// maxDocuments is the number of sets of scopes whose documents are kept. Documents share their parts, so those of 10,000 tools take only some 300 KB
// each.
const maxDocuments = 16

// describe makes the documents of a generation describe the required security schemes.
func (s *derived) describe(required security) {
	l := &library{security: required, byScopes: map[string]documents{}, byNamespace: map[string]*web.Document{}}
	l.all = sync.OnceValue(func() documents { return s.documents(l, wasmtools.Everybody()) })
	l.most = sync.OnceValue(func() (bytes int64) {
		for _, e := range s.entries {
			bytes += int64(len(e.item.text) + len(e.schemas.text))
		}
		return bytes
	})
	s.library.Store(l)
}

// documentsFor returns the documents with the tools that a principal may call.
func (s *derived) documentsFor(p *wasmtools.Principal) documents {
	l := s.library.Load()
	if p.MayAll() {
		return l.all()
	}
	scopes := strings.Join(p.Scopes(), "\n")
	if found, ok := l.get(scopes); ok {
		return found
	}
	l.building.Lock()
	defer l.building.Unlock()
	found, ok := l.get(scopes) // another request may have built them
	if !ok {
		found = s.documents(l, p)
		l.put(scopes, found)
	}
	return found
}

func (l *library) get(scopes string) (found documents, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok = l.byScopes[scopes]
	return found, ok
}

func (l *library) put(scopes string, d documents) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byScopes) == maxDocuments {
		clear(l.byScopes)
	}
	l.byScopes[scopes] = d
}

// keep reports whether a compressed document of n bytes may be kept.
func (l *library) keep(bytes int) bool {
	if l.kept.Add(int64(bytes)) <= l.most() {
		return true
	}
	l.kept.Add(-int64(bytes))
	return false
}

// documents builds the documents with the enabled tools that a principal may call, in the order of their paths.
func (s *derived) documents(l *library, p *wasmtools.Principal) documents {
	var listings []*fragment
	var shown []*entry
	for i, route := range s.generation.Routes() {
		if route.Enabled && p.MayCall(&route) {
			shown = append(shown, s.entries[i])
			listings = append(listings, &s.entries[i].listing)
		}
	}
	tools := &assembly{}
	tools.add("[").join(listings, "").add("]\n")
	return documents{tools.document(l.keep), s.describing(l.security, s.door.title, shown).document(l.keep)}
}

// describing builds the document of tools.
func (s *derived) describing(required security, title string, tools []*entry) *assembly {
	var items, schemas []*fragment
	for _, e := range tools {
		items = append(items, &e.item)
		if len(e.schemas.text) > 0 {
			schemas = append(schemas, &e.schemas)
		}
	}
	openapi := &assembly{}
	openapi.add(s.head(required, title)).join(items, required.failures()).add(`},"components":{"schemas":{` + ownSchemas)
	if len(schemas) > 0 {
		openapi.add(",").join(schemas, "")
	}
	return openapi.add("}" + required.tail() + "}\n")
}

// An assembly is a document that is being put together from fragments.
type assembly struct {
	parts []*fragment
	size  int
}

func (a *assembly) add(text string) *assembly {
	f := newFragment([]byte(text))
	return a.append(&f)
}

// join adds fragments with commas between them, each followed by end.
func (a *assembly) join(fragments []*fragment, end string) *assembly {
	between, last := newFragment([]byte(end+",")), newFragment([]byte(end))
	for i, f := range fragments {
		if a.append(f); i < len(fragments)-1 {
			a.append(&between)
		} else {
			a.append(&last)
		}
	}
	return a
}

func (a *assembly) append(f *fragment) *assembly {
	a.parts = append(a.parts, f)
	a.size += len(f.text)
	return a
}

var _ web.Content = (*assembly)(nil)

// Size returns how many bytes the document has.
func (a *assembly) Size() int { return a.size }

// WriteTo writes the document.
func (a *assembly) WriteTo(w io.Writer) (written int64, err error) {
	for _, f := range a.parts {
		n, err := w.Write(f.text)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	return written, nil
}

// document returns the finished document. Its tag is a hash of the hashes of its fragments. Equal documents always consist of equal fragments, so the
// tag is the same on every replica and after a restart.
func (a *assembly) document(keep func(bytes int) bool) *web.Document {
	all := sha256.New()
	for _, f := range a.parts {
		all.Write(f.sum[:])
	}
	return web.NewDocumentOf(a, `"`+base64.RawURLEncoding.EncodeToString(all.Sum(nil)[:18])+`"`, keep)
}

// head returns the beginning of the document, up to the first of its paths.
func (s *derived) head(required security, title string) string {
	head := struct {
		OpenAPI string `json:"openapi"`
		Info    struct {
			Title       string `json:"title"`
			Version     string `json:"version"`
			Description string `json:"description,omitempty"`
		} `json:"info"`
		Servers  []documentServer      `json:"servers,omitempty"`
		Security []map[string][]string `json:"security,omitempty"`
	}{OpenAPI: "3.1.0", Servers: s.door.servers}
	head.Info.Title, head.Info.Version, head.Info.Description = title, s.door.version, s.door.description
	if len(required.requirements) > 0 {
		head.Security = required.requirements
	}
	text := mustEncode(head)
	return string(text[:len(text)-1]) + `,"paths":{`
}

// tail returns the end of the document's components, after the schemas.
func (s security) tail() string {
	responses := map[string]any{}
	for _, f := range s.failureResponses() {
		r := map[string]any{
			"description": f.description,
			"content":     inJSON(json.RawMessage(f.schema), nil),
		}
		if f.header != "" {
			r["headers"] = map[string]any{f.header: map[string]any{"schema": map[string]string{"type": "string"}}}
		}
		responses[f.name] = r
	}
	tail := `,"responses":` + string(mustEncode(responses))
	if len(s.Schemes) > 0 {
		tail += `,"securitySchemes":` + string(mustEncode(s.Schemes))
	}
	return tail + "}"
}

// A documentServer is an address in the document.
type documentServer struct {
	URL string `json:"url"`
}

// A failureResponse is a response in the document that every tool may give.
type failureResponse struct {
	status, name, description, schema, header string
}

func (s security) failureResponses() []failureResponse {
	const plain = `{"$ref":"#/components/schemas/Error"}`
	all := []failureResponse{
		{"400", "ToolError", "The tool refused: detail is its message. A tool may choose another status", plain, ""},
		{"404", "NotFound", "The tool no longer exists", plain, ""},
		{"408", "RequestTimeout", "The body did not arrive in time", plain, ""},
		{"413", "InputTooLarge", "The body is too large", plain, ""},
		{"415", "UnsupportedMediaType", "The body is not application/json", plain, ""},
		// A tool may use 422 for an error of its own, with a plain detail. No schema has the same name as this response, since client generators make
		// one type for each component, whatever its kind.
		{"422", "InvalidArguments", "The body is not valid JSON, or the arguments do not fit the schema", `{"anyOf":[{"$ref":"#/components/schemas/HTTPValidationError"},` + plain + `]}`, ""},
		{"429", "RateLimited", "The caller makes too many calls", plain, "Retry-After"},
		{"500", "ToolFailed", "The tool or the service broke", plain, ""},
		{"503", "Unavailable", "The tool is disabled, or too many calls are running", plain, "Retry-After"},
		{"504", "ToolTimeout", "The tool ran out of time", plain, ""},
		{"default", "Failed", "Any other failure", plain, ""},
	}
	if len(s.Schemes) > 0 {
		all = append(all, failureResponse{"401", "Unauthorized", "The token is missing or not valid", plain, "WWW-Authenticate"})
	}
	return all
}

// failures returns the end of each path item: all responses except 200. They are references, and the same for every tool. Keeping them in memory
// once saves ten thousand tools from repeating them, and makes a change of the security cheap.
func (s security) failures() string {
	all := map[string]any{}
	for _, f := range s.failureResponses() {
		all[f.status] = map[string]string{"$ref": "#/components/responses/" + f.name}
	}
	text := mustEncode(all)
	return "," + string(text[1:]) + itemEnd
}

// ownSchemas are the service's own components. They can't clash with components of tools, whose names have a dot.
// The first two have the names and the shape that FastAPI gives them.
const ownSchemas = `"HTTPValidationError":{"type":"object","title":"HTTPValidationError","properties":{` +
	`"detail":{"type":"array","title":"Detail","items":{"$ref":"#/components/schemas/ValidationError"}},` +
	`"code":{"type":"string","title":"Code"}},"required":["detail","code"]},` +
	`"ValidationError":{"type":"object","title":"ValidationError","properties":{` +
	`"type":{"type":"string","title":"Error Type"},` +
	`"loc":{"type":"array","title":"Location","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}},` +
	`"msg":{"type":"string","title":"Message"},` +
	`"input":{"title":"Input"},` +
	`"ctx":{"type":"object","title":"Context"}},"required":["loc","msg","type"]},` +
	`"Error":{"type":"object","title":"Error","properties":{` +
	`"detail":{"type":"string","title":"Detail"},` +
	`"code":{"type":"string","title":"Code"},` +
	`"error":{"type":"object","title":"Tool Error","description":"What the tool said of its failure","properties":{` +
	`"code":{"type":"string"},"data":{}}},` +
	`"request_id":{"type":"string","title":"Request ID"}},"required":["detail"]}`
