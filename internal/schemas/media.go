package schemas

import (
	"mime"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

const (
	// maxMediaPlaces bounds the schemas that Media looks at. A schema is counted once for every way that leads to it.
	maxMediaPlaces = 5000
	// maxMediaType bounds a media type in bytes: RFC 6838 allows names of at most 127 on each side of the slash.
	maxMediaType = 255
)

// A Media says which strings of a value are files in base64, such as images. It never changes.
type Media struct {
	// Type is the media type of the value itself, as its author wrote it, such as "image/png". If empty, the value is not a file.
	Type string
	// Members are the Media of an object's members. Members without files are left out.
	Members map[string]*Media
	// Items is the Media of an array's items, or nil.
	Items *Media
}

// Media returns where a value that fits the schema has files: strings with the contentEncoding "base64" and a contentMediaType. It returns nil if
// there are none. A schema that refers to itself is followed only once.
func (s *Schema) Media() *Media {
	m := &mediaFinder{source: s.source(), left: maxMediaPlaces, within: map[int32]bool{}}
	return m.find(0)
}

type mediaFinder struct {
	*source
	left   int
	within map[int32]bool // the schemas around the current one
}

// find returns the Media of a value to which the schema at i applies.
func (f *mediaFinder) find(i int32) *Media {
	if f.left--; f.left < 0 || f.within[i] || f.tree.Values[i].Kind != jsontree.Object {
		return nil
	}
	f.within[i] = true
	defer delete(f.within, i)
	var found *Media
	for _, name := range []string{"$ref", "$recursiveRef", "$dynamicRef"} {
		if to, ok := f.targets[f.keyword(i, name)]; ok {
			if found = found.with(f.find(to)); f.draft <= draft7 {
				return found // other keywords next to $ref are ignored
			}
		}
	}
	if f.str0(f.keyword(i, "contentEncoding")) == "base64" {
		kind := f.str0(f.keyword(i, "contentMediaType"))
		if main, _, err := mime.ParseMediaType(kind); err == nil && strings.Contains(main, "/") && len(kind) <= maxMediaType {
			found = found.with(&Media{Type: kind})
		}
	}
	for m := f.tree.Values[i].First; m != 0; m = f.tree.Values[m].Next {
		v := &f.tree.Values[m]
		if !f.draft.known(v.Key) {
			continue
		}
		switch v.Key {
		case "allOf", "anyOf", "oneOf":
			if v.Kind == jsontree.Array {
				for c := v.First; c != 0; c = f.tree.Values[c].Next {
					found = found.with(f.find(c))
				}
			}
		case "then", "else":
			found = found.with(f.find(m))
		case "items":
			if items := f.find(m); items != nil {
				found = found.with(&Media{Items: items})
			}
		case "properties":
			if v.Kind != jsontree.Object {
				continue
			}
			for c := v.First; c != 0; c = f.tree.Values[c].Next {
				if member := f.find(c); member != nil {
					found = found.with(&Media{Members: map[string]*Media{f.tree.Values[c].Key: member}})
				}
			}
		}
	}
	return found
}

// keyword returns the value of a keyword of the schema at i, or 0 if it is missing or the draft doesn't know it.
func (f *mediaFinder) keyword(i int32, name string) int32 {
	if !f.draft.known(name) {
		return 0
	}
	return f.tree.Member(i, name)
}

// str0 is str, but returns "" for a missing value.
func (f *mediaFinder) str0(i int32) string {
	if i == 0 {
		return ""
	}
	return f.str(i)
}

// with adds another Media to m, and returns the result. If there are two types for one value, the first one wins. Neither may be used afterwards.
func (m *Media) with(other *Media) *Media {
	if m == nil {
		return other
	}
	if other == nil {
		return m
	}
	if m.Type == "" {
		m.Type = other.Type
	}
	m.Items = m.Items.with(other.Items)
	if m.Members == nil {
		m.Members = other.Members
		return m
	}
	for name, member := range other.Members {
		m.Members[name] = m.Members[name].with(member)
	}
	return m
}
