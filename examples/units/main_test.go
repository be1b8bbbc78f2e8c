package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

func call(t *testing.T, value float64, from, to string) (out conversion, err error) {
	t.Helper()
	arguments, _ := json.Marshal(map[string]any{"value": value, "from": from, "to": to})
	result, err := toolsrvtest.Call(t, module, "convert", string(arguments))
	if err == nil {
		err = json.Unmarshal([]byte(result), &out)
	}
	return out, err
}

func TestConvert(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value    float64
		from, to string
		want     float64
		symbol   string
	}{
		{1, "in", "cm", 2.54, "cm"},
		{1, "inches", "mm", 25.4, "mm"},
		{6, "feet", "m", 1.8288, "m"},
		{26.2, "Miles", "kilometres", 42.1648128, "km"},
		{5, "\u00b5m", "nm", 5000, "nm"},
		{1, "square feet", "m2", 0.09290304, "m²"},
		{1, "m^2", "cm²", 10000, "cm²"},
		{1, "acre", "ha", 0.40468564224, "ha"},
		{1, "gal", "L", 3.785411784, "L"},
		{1, "imperial gallon", "liters", 4.54609, "L"},
		{8, "fluid ounces", "cup", 1, "cup"},
		{150, "lbs", "kg", 68.0388555, "kg"},
		{0, "°C", "°F", 32, "°F"},
		{-40, "f", "C", -40, "°C"},
		{-273.15, "celsius", "kelvin", 0, "K"},
		{25, "degrees Celsius", "F", 77, "°F"},
		{100, "km/h", "mph", 62.1371192237, "mph"},
		{1, "knot", "km/h", 1.852, "km/h"},
		{1.5, "hours", "min", 90, "min"},
		{1, "GB", "GiB", 0.931322574615, "GiB"},
		{1, "MiB", "B", 1048576, "B"},
		{100, "Mbit", "MB", 12.5, "MB"},
		{32, "psi", "bar", 2.20632233381, "bar"},
		{1, "kWh", "kcal", 860.420650096, "kcal"},
		{100, "hp", "kW", 74.5699871582, "kW"},
		{180, "degrees", "rad", 3.14159265359, "rad"},
		{60, "rpm", "Hz", 1, "Hz"},
		{30, "mpg", "L/100km", 7.84048611111, "L/100km"},
		{5, "l/100 km", "km/L", 20, "km/L"},
		{100, "sq ft", "m2", 9.290304, "m²"},
		{1, "cu in", "mL", 16.387064, "mL"},
		{1, "lbs.", "oz", 16, "oz"},
		{0, "m", "ft", 0, "ft"},
		{-5, "m", "cm", -500, "cm"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.value, test.from, " to ", test.to), func(t *testing.T) {
			t.Parallel()
			got, err := call(t, test.value, test.from, test.to)
			if err != nil || math.Abs(got.Value-test.want) > 1e-11*math.Abs(test.want) || got.Unit != test.symbol {
				t.Errorf("got %+v, %v, want %v %s", got, err, test.want, test.symbol)
			}
		})
	}
}

func TestSlips(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, from, to string
		value          float64
		want           string
	}{
		{"misspelt", "kilometrs", "m", 1, `from: there is no unit "kilometrs"; did you mean kilometre, kilometer`},
		{"nonsense", "???", "m", 1, "did you mean"},
		{"different quantities", "kg", "m", 1, "kg is a unit of mass, and m one of length: convert to one of kg, g, mg"},
		{"bits or bytes", "Mb", "GB", 1, "can mean MB (megabyte) or Mbit (megabit)"},
		{"terabits or bytes", "Tb", "GB", 1, "can mean TB (terabyte) or Tbit (terabit)"},
		{"nautical miles", "NM", "km", 1, "can mean nm (nanometer) or nmi (nautical-mile)"},
		{"calories of food", "Cal", "kJ", 1, "can mean cal (calorie) or kcal (kilocalorie)"},
		{"milli or mega", "mPa", "bar", 1, `"mPa" is not MPa (megapascal)`},
		{"mega or milli", "Mg", "kg", 1, `"Mg" is not mg (milligram)`},
		{"below absolute zero", "C", "F", -300, "below absolute zero"},
		{"no consumption", "mpg", "L/100km", 0, "division by zero"},
		{"too large", "pc", "nm", 1e300, "too large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, test.value, test.from, test.to)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v, want an error with %q", got, err, test.want)
			}
		})
	}
	if got, err := toolsrvtest.Call(t, module, "list", `{"quantity": "luck"}`); err == nil || !strings.Contains(err.Error(), "there are length, area") {
		t.Errorf("got %s, %v, want an error with the quantities", got, err)
	}
}

// TestTable finds every unit by its symbol and by each of its names, and converts it to its base unit and back.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := []string{}
	for i := range units {
		u := &units[i]
		if slices.Contains(seen, u.symbol) {
			t.Errorf("the symbol %s is in the table twice", u.symbol)
		}
		seen = append(seen, u.symbol)
		if got, err := find("from", u.symbol); err != nil || got != u {
			t.Errorf("%s: got %v, %v", u.symbol, got, err)
		}
		for _, name := range strings.Fields(u.names) {
			got, err := find("from", name)
			if ambiguous := err != nil && strings.Contains(err.Error(), u.symbol); got != u && !ambiguous {
				t.Errorf("%s of %s: got %v, %v", name, u.symbol, got, err)
			}
		}
		if got := u.fromBase(u.toBase(7)); math.Abs(got-7) > 1e-12 {
			t.Errorf("%s: 7 becomes %v on the way to the base unit and back", u.symbol, got)
		}
	}
}

// FuzzFind looks up arbitrary names: the result is a unit, or an error with a remedy.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"km", "", "Ω", "\xff", "m²", "ss", "square-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 50 {
			return
		}
		if u, err := find("from", name); (u == nil) == (err == nil) {
			t.Errorf("%q: got %v, %v", name, u, err)
		}
	})
}
