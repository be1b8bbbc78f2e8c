package typed

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// touchy is a type whose methods only work for values that a tool has made.
type touchy struct{ made *string }

func (v touchy) MarshalJSON() ([]byte, error) { return json.Marshal(*v.made) }

// touchyReader is the same for decoding, touchyText for texts and keys.
type touchyReader struct{ made *string }

func (v *touchyReader) UnmarshalJSON(b []byte) error { *v.made = string(b); return nil }

type touchyText struct{ made *string }

func (v *touchyText) MarshalText() ([]byte, error) { return []byte(*v.made), nil }

type touchyKey string

func (touchyKey) MarshalText() ([]byte, error) { panic("called") }

// TestWarm warms up types whose values panic if no tool has made them, or cause an error, which is a panic in TinyGo.
func TestWarm(t *testing.T) {
	t.Parallel()
	type tree struct {
		Name string `json:"name"`
		Kids []tree `json:"kids"`
	}
	type inner struct {
		N int `json:"n"`
	}
	type innerTouchy struct {
		T touchy
	}
	tests := []struct {
		name    string
		pointer any
		want    string // the sample's JSON; empty where there is none
	}{
		{"method that panics", (*touchy)(nil), ``},
		{"method for reading", (*touchyReader)(nil), ``},
		{"method for texts", (*touchyText)(nil), ``},
		{"member", (*struct{ T touchy })(nil), ``},
		{"member of an array", (*struct{ T [2]touchy })(nil), ``},
		{"embedded", (*struct{ innerTouchy })(nil), ``},
		{"within others", (*struct {
			P *touchy
			L []touchyText
			M map[string]touchy
			K map[touchyKey]int
			D *struct{ T touchy }
		})(nil), `{"P":null,"L":null,"M":null,"K":null,"D":null}`},
		{"second of a type that is left out", (*struct {
			P, Q *touchy
			T    touchy
		})(nil), ``},
		{"no JSON", (*struct{ C chan int })(nil), ``},
		{"no JSON, left out", (*struct {
			F func() `json:"-"`
			c chan int
			N int
		})(nil), `{"N":1}`},
		{"no JSON, within others", (*struct {
			P *chan int
			L []complex64
		})(nil), `{"P":null,"L":null}`},
		{"key that is none", (*map[float64]int)(nil), ``},
		{"number", (*json.Number)(nil), `1`},
		{"scalars", (*struct {
			B bool
			I int8
			U uint64
			F float32
			S string
			A any
		})(nil), `{"B":true,"I":1,"U":1,"F":1.5,"S":"a","A":null}`},
		{"special", (*struct {
			T time.Time
			R json.RawMessage
			D time.Duration
		})(nil), `{"T":"0001-01-01T00:00:00Z","R":null,"D":1}`},
		{"composed", (*struct {
			inner
			P *inner
			L []*float64
			M map[int]string
			A [2]int
			Z [0]int
		})(nil), `{"n":1,"P":{"n":0},"L":[1.5],"M":{"1":"a"},"A":[1,0],"Z":[]}`},
		{"recursive", (*tree)(nil), `{"name":"a","kids":null}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			Warm(test.pointer)
			v := reflect.New(reflect.TypeOf(test.pointer).Elem())
			got := []byte{}
			if (sampler{}).fill(v.Elem()) {
				var err error
				if got, err = Encode(v.Interface()); err != nil {
					t.Fatalf("the sample can't be written: %v", err)
				}
			}
			if string(got) != test.want {
				t.Errorf("got the sample %s, want %s", got, test.want)
			}
		})
	}
}
