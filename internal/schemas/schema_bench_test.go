package schemas_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

const orderSchema = `{
	"type": "object",
	"properties": {
		"customer": {"type": "string", "minLength": 1, "maxLength": 64},
		"express": {"type": "boolean"},
		"quantity": {"type": "integer", "minimum": 1, "maximum": 1000},
		"size": {"enum": ["small", "medium", "large"]},
		"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}
	},
	"required": ["customer", "quantity"],
	"additionalProperties": false,
	"$defs": {"item": {
		"type": "object",
		"properties": {"sku": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"}, "price": {"type": "number", "exclusiveMinimum": 0}},
		"required": ["sku", "price"]
	}}
}`

const smallOrder = `{"customer": "Ada Lovelace", "express": true, "quantity": 3, "size": "medium", "items": [], "x": 0}`

// order returns a valid body of about size bytes.
func order(size int) []byte {
	var out strings.Builder
	out.WriteString(`{"customer":"Ada Lovelace","express":true,"quantity":3,"size":"medium","items":[`)
	for i := 0; out.Len() < size-40; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"sku":"ABC-%d","price":%d.5}`, i, i)
	}
	out.WriteString("]}")
	return []byte(out.String())
}

func BenchmarkValidate(b *testing.B) {
	empty := schemas.MustCompile(`{"type": "object"}`)
	orders := schemas.MustCompile(orderSchema)
	defaults := schemas.MustCompile(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","default":"x"}}}`)
	for _, bench := range []struct {
		name   string
		schema *schemas.Schema
		body   []byte
	}{
		{"0B", empty, nil},
		{"100B", orders, order(120)},
		{"1KB", orders, order(1 << 10)},
		{"64KB", orders, order(64 << 10)},
		{"default", defaults, []byte(`{"a": 1}`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bench.body)))
			for b.Loop() {
				if _, err := bench.schema.Validate(bench.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("violations", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := orders.Validate([]byte(smallOrder)); err == nil {
				b.Fatal("accepted")
			}
		}
	})
}

// BenchmarkLibrary measures the plain twin, for comparison: encoding/json and the library's own check.
func BenchmarkLibrary(b *testing.B) {
	judge, err := library(orderSchema)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{120, 1 << 10, 64 << 10} {
		body := order(size)
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := judge(body); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schemas.Compile(json.RawMessage(orderSchema)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDocument(b *testing.B) {
	s := schemas.MustCompile(orderSchema)
	b.ReportAllocs()
	for b.Loop() {
		s.Document("order")
	}
}
