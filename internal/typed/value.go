package typed

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// maxDepth bounds the walk through a value: encoding/json refuses cycles later, and says so.
const maxDepth = 1000

// nils knows which types can hold a nil slice or map that encoding/json would write as null.
type nils map[reflect.Type]bool

// findNils returns the nils of t and of the types in it, or nil if there is nothing to do.
func findNils(t reflect.Type) nils {
	n := nils{}
	if !n.find(t) {
		return nil
	}
	return n
}

func (n nils) find(t reflect.Type) bool {
	if known, ok := n[t]; ok {
		return known
	}
	n[t] = true // a recursive type is walked
	n[t] = n.within(t)
	return n[t]
}

func (n nils) within(t reflect.Type) (found bool) {
	switch t.Kind() {
	case reflect.Pointer:
		return n.find(t.Elem())
	case reflect.Array, reflect.Slice, reflect.Map, reflect.Struct:
	default:
		return false
	}
	if ownForm(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Array:
		return n.find(t.Elem())
	case reflect.Struct:
		for i := 0; i < t.NumField(); i++ {
			f := t.Field(i)
			if f.PkgPath == "" || f.Anonymous {
				found = n.find(f.Type) || found
			}
		}
		return found
	default:
		n.find(t.Elem())
		return true
	}
}

// ownForm reports whether values of t write their JSON themselves.
func ownForm(t reflect.Type) bool {
	v := reflect.New(t).Interface()
	_, ownJSON := v.(json.Marshaler)
	_, ownText := v.(encoding.TextMarshaler)
	return ownJSON || ownText
}

// any reports whether there is a nil slice or map in v.
func (n nils) any(v reflect.Value, depth int) bool {
	t := v.Type()
	if depth > maxDepth || !n[t] {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && n.any(v.Elem(), depth+1)
	case reflect.Slice, reflect.Map:
		if v.IsNil() || !n[t.Elem()] {
			return v.IsNil()
		}
	}
	switch t.Kind() {
	case reflect.Array, reflect.Slice:
		for i := 0; i < v.Len(); i++ {
			if n.any(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if n.any(v.MapIndex(key), depth+1) {
				return true
			}
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if n.walks(v, i) && n.any(v.Field(i), depth+1) {
				return true
			}
		}
	}
	return false
}

// walks reports whether encoding/json may write a field of the struct v, so that nil slices and maps in it matter.
func (n nils) walks(v reflect.Value, i int) bool {
	f := v.Type().Field(i)
	return n[f.Type] && (f.PkgPath == "" || f.Anonymous && f.Type.Kind() == reflect.Struct) &&
		!(strings.Contains(f.Tag.Get("json"), ",omitzero") && v.Field(i).IsZero())
}

// empty makes each nil slice and map in v empty. v is addressable and nobody else's; what it points to, and the elements of its
// slices and maps, may be shared by calls that run at the same time, so a copy takes their place.
func (n nils) empty(v reflect.Value, depth int) {
	t := v.Type()
	if depth > maxDepth || !n[t] {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(t.Elem())
			own.Elem().Set(v.Elem())
			n.empty(own.Elem(), depth+1)
			v.Set(own)
		}
	case reflect.Array:
		for i := 0; i < v.Len(); i++ {
			n.empty(v.Index(i), depth+1)
		}
	case reflect.Slice:
		if v.IsNil() || n[t.Elem()] {
			own := reflect.MakeSlice(t, v.Len(), v.Len())
			for i := 0; i < v.Len(); i++ {
				own.Index(i).Set(v.Index(i))
				n.empty(own.Index(i), depth+1)
			}
			v.Set(own)
		}
	case reflect.Map:
		if v.IsNil() || n[t.Elem()] {
			own := reflect.MakeMap(t)
			for _, key := range v.MapKeys() {
				element := reflect.New(t.Elem()).Elem()
				element.Set(v.MapIndex(key))
				n.empty(element, depth+1)
				own.SetMapIndex(key, element)
			}
			v.Set(own)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if f := v.Field(i); n.walks(v, i) && (f.CanSet() || f.Kind() == reflect.Struct) {
				n.empty(f, depth+1)
			}
		}
	}
}

// Warm has encoding/json prepare for the type that pointer, a nil one, points to, and write and read a value of it once.
// It calls no method by which a type reads or writes itself, since that may panic for a value that no tool made. It also causes no error: inside
// encoding/json an error is a panic, too, which ends a guest of TinyGo.
func Warm(pointer any) {
	_, _ = Encode(pointer) // writes null, after it has looked at the whole type
	t := reflect.TypeOf(pointer).Elem()
	v := reflect.New(t)
	if !(sampler{}).fill(v.Elem()) {
		return
	}
	if text, err := Encode(v.Interface()); err == nil {
		_ = Decode(text, reflect.New(t).Interface())
	}
}

// A sampler fills values so that they hold something of each type in them. It knows the composite types that it has met,
// and whether encoding/json accepts their samples: each type is tried once, which also ends recursion.
type sampler map[reflect.Type]bool

// fill fills v, and reports whether encoding/json accepts it, both filled and zero.
func (s sampler) fill(v reflect.Value) bool {
	t := v.Type()
	switch {
	case t == timeType || t == rawType:
		return true
	case foreign(t), !v.CanSet() && t.Kind() != reflect.Struct:
		return false
	case t == numberType:
		v.SetString("1")
		return true
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.String:
		v.SetString("a")
	case reflect.Interface: // null
	default:
		good, met := s[t]
		if !met {
			s[t] = false // while it is being filled
			good = s.compose(v)
			s[t] = good
		}
		return good
	}
	return true
}

// foreign reports whether a type reads or writes its JSON itself.
func foreign(t reflect.Type) bool {
	v := reflect.New(t).Interface()
	_, reads := v.(json.Unmarshaler)
	_, readsText := v.(encoding.TextUnmarshaler)
	return reads || readsText || ownForm(t)
}

// compose fills a value that is made of others. A value without good elements stays empty.
func (s sampler) compose(v reflect.Value) bool {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		if to := reflect.New(t.Elem()); s.fill(to.Elem()) {
			v.Set(to)
		}
	case reflect.Slice:
		if list := reflect.MakeSlice(t, 1, 1); s.fill(list.Index(0)) {
			v.Set(list)
		}
	case reflect.Array:
		return v.Len() == 0 || s.fill(v.Index(0))
	case reflect.Map:
		key, element := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if k := t.Key().Kind(); k != reflect.String && (k < reflect.Int || k > reflect.Uint64) {
			return false
		}
		if s.fill(key) && s.fill(element) {
			v.Set(reflect.MakeMap(t))
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			f := t.Field(i)
			hidden := f.PkgPath != "" && !(f.Anonymous && f.Type.Kind() == reflect.Struct)
			if !hidden && f.Tag.Get("json") != "-" && !s.fill(v.Field(i)) {
				return false
			}
		}
	default:
		return false
	}
	return true
}
