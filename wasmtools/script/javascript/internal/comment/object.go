package comment

import (
	"bytes"
	"encoding/json"
)

// An object is a JSON object that keeps the order of its members: that in which the author wrote them.
type object []member

type member struct {
	name  string
	value any
}

// with returns the object with a member more, or with another value of one.
func (o object) with(name string, value any) object {
	for i, m := range o {
		if m.name == name {
			out := append(object(nil), o...)
			out[i].value = value
			return out
		}
	}
	return append(o[:len(o):len(o)], member{name, value})
}

// get returns a member's value, or nil.
func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// without returns the object without a member.
func (o object) without(name string) object {
	var out object
	for _, m := range o {
		if m.name != name {
			out = append(out, m)
		}
	}
	return out
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := write(&out, m.name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := write(&out, m.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func write(out *bytes.Buffer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1)
	return nil
}
