package conformance_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
)

// same reports whether two JSON texts have equal values; an empty text equals only another empty text.
func same(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, err := value(a)
	y, also := value(b)
	return err == nil && also == nil && reflect.DeepEqual(x, y)
}

// value returns the value of a JSON text, with exact numbers.
func value(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return exact(v), err
}

// exact replaces numbers by their shortest fraction.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Rat).SetString(v.String()); ok {
			return n.RatString()
		}
		return v
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}
