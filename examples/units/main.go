// Command units is a module of tools that convert between units of measurement.
package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type query struct {
	Value  float64 `json:"value"`
	From   string  `json:"from" minLength:"1" maxLength:"50" description:"The unit of the value, by its symbol or its name." examples:"km,mile,°F,GiB"`
	To     string  `json:"to" minLength:"1" maxLength:"50" description:"The unit to convert to."`
	Digits int     `json:"digits" default:"12" minimum:"1" maximum:"15" description:"Significant digits of the result."`
}

type conversion struct {
	Value    float64 `json:"value"`
	Unit     string  `json:"unit" description:"The symbol of the unit that the value is in."`
	Quantity string  `json:"quantity" description:"What is measured."`
	Text     string  `json:"text" description:"The conversion in words."`
}

type listing struct {
	Quantity string `json:"quantity" default:"" description:"Of which quantity; all where it is empty." examples:"length"`
}

type group struct {
	Quantity string  `json:"quantity"`
	Units    []label `json:"units"`
}

type label struct {
	Symbol string   `json:"symbol"`
	Names  []string `json:"names"`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "units",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("convert", "Convert a value from one unit to another: length, area, volume, mass, temperature, speed, time, data, pressure, energy, power, force, angle, frequency, fuel consumption.", convert,
			toolsrv.Example{Arguments: `{"value": 10, "from": "km", "to": "miles"}`, Result: `{"value": 6.21371192237, "unit": "mi", "quantity": "length", "text": "10 km = 6.21371192237 mi"}`},
			toolsrv.Example{Arguments: `{"value": 98.6, "from": "°F", "to": "celsius"}`, Result: `{"value": 37, "unit": "°C", "quantity": "temperature", "text": "98.6 °F = 37 °C"}`},
		).With(toolsrv.Options{Title: "Convert units", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
		toolsrv.Func("list", "List the units that convert knows, with their symbols and names.", list,
			toolsrv.Example{
				Arguments: `{"quantity": "angle"}`,
				Result: `[{"quantity": "angle", "units": [{"symbol": "rad", "names": ["radian"]}, {"symbol": "°", "names": ["deg", "degree"]},
					{"symbol": "′", "names": ["arcmin", "arcminute"]}, {"symbol": "″", "names": ["arcsec", "arcsecond"]}, {"symbol": "gon", "names": ["grad", "gradian"]}, {"symbol": "turn", "names": ["revolution"]}]}]`,
			},
		).With(toolsrv.Options{Title: "List units", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

func convert(_ *toolsrv.Call, in query) (conversion, error) {
	from, err := find("from", in.From)
	if err != nil {
		return conversion{}, err
	}
	to, err := find("to", in.To)
	if err != nil {
		return conversion{}, err
	}
	if from.quantity != to.quantity {
		return conversion{}, &toolsrv.Error{Code: "different_quantities", Message: fmt.Sprintf(
			"%s is a unit of %s, and %s one of %s: convert to one of %s.", from.symbol, from.quantity, to.symbol, to.quantity, symbols(from.quantity))}
	}
	base := from.toBase(in.Value)
	if from.quantity == "temperature" && base < -1e-9 {
		return conversion{}, &toolsrv.Error{Code: "below_absolute_zero", Message: fmt.Sprintf("%v %s is below absolute zero (-273.15 °C).", in.Value, from.symbol)}
	}
	value := round(to.fromBase(base), in.Digits)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return conversion{}, &toolsrv.Error{Code: "out_of_range", Message: fmt.Sprintf("%v %s has no value in %s: it is too large, or a division by zero.", in.Value, from.symbol, to.symbol)}
	}
	text := fmt.Sprintf("%s %s = %s %s", digits(in.Value), from.symbol, digits(value), to.symbol)
	return conversion{value, to.symbol, to.quantity, text}, nil
}

// round rounds to significant digits: further digits are noise of the calculation.
func round(v float64, significant int) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significant, 64), 64)
	if err != nil {
		return math.Inf(1)
	}
	return out
}

// digits writes a number as people do, with an exponent only where it would be long.
func digits(v float64) string {
	if a := math.Abs(v); v != 0 && (a < 1e-6 || a >= 1e15) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func list(_ *toolsrv.Call, in listing) ([]group, error) {
	var out []group
	for _, u := range units {
		if in.Quantity != "" && !strings.EqualFold(u.quantity, in.Quantity) {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Quantity != u.quantity {
			out = append(out, group{Quantity: u.quantity})
		}
		g := &out[len(out)-1]
		g.Units = append(g.Units, label{u.symbol, strings.Fields(u.names)})
	}
	if out == nil {
		return nil, &toolsrv.Error{Code: "unknown_quantity", Message: fmt.Sprintf("There is no quantity %.60q; there are %s.", in.Quantity, strings.Join(quantities(), ", "))}
	}
	return out, nil
}

// quantities returns all quantities in the order of the table.
func quantities() []string {
	var out []string
	for _, u := range units {
		if !slices.Contains(out, u.quantity) {
			out = append(out, u.quantity)
		}
	}
	return out
}

// symbols lists the units of a quantity.
func symbols(quantity string) string {
	var out []string
	for _, u := range units {
		if u.quantity == quantity {
			out = append(out, u.symbol)
		}
	}
	return strings.Join(out, ", ")
}

// bySymbol and byName are made once for all calls, when the module starts.
var bySymbol, byName = index()

// index returns the units by their symbols as they can be typed, and by their symbols and names in small letters.
func index() (bySymbol map[string]*unit, byName map[string][]*unit) {
	bySymbol, byName = map[string]*unit{}, map[string][]*unit{}
	for i := range units {
		u := &units[i]
		symbol := typed.Replace(u.symbol)
		bySymbol[symbol] = u
		for _, name := range append(strings.Fields(u.names), strings.ToLower(symbol)) {
			if !slices.Contains(byName[name], u) {
				byName[name] = append(byName[name], u)
			}
		}
	}
	for name, symbol := range map[string]string{"nm": "nmi", "cal": "kcal"} { // NM, Cal
		byName[name] = append(byName[name], bySymbol[symbol])
	}
	return bySymbol, byName
}

// typed returns a name as people can type it.
var typed = strings.NewReplacer("²", "2", "³", "3", "^", "", "\u00b5", "μ", "_", " ")

// find returns the unit with a name. An exact symbol comes first. Otherwise symbols and names are compared without regard to case, also in the
// plural, and only one unit may match.
func find(member, name string) (*unit, error) {
	name = typed.Replace(strings.TrimSpace(name))
	if u := bySymbol[name]; u != nil {
		return u, nil
	}
	low := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(name), " ", "-"), ".")
	for short, power := range map[string]string{"sq-": "2", "cu-": "3"} { // sq ft, cu in
		if rest, ok := strings.CutPrefix(low, short); ok && bySymbol[rest+power] != nil {
			return bySymbol[rest+power], nil
		}
	}
	var found []*unit
	for _, candidate := range []string{low, strings.TrimSuffix(low, "s"), strings.TrimSuffix(low, "es")} {
		if found = byName[candidate]; found != nil {
			break
		}
	}
	if len(found) == 1 {
		u := found[0]
		if usual := strings.Fields(u.names)[0]; strings.EqualFold(name, u.symbol) && name[0] != u.symbol[0] && (strings.HasPrefix(usual, "milli") || strings.HasPrefix(usual, "mega")) {
			return nil, &toolsrv.Error{Code: "ambiguous_unit", Message: fmt.Sprintf("%s: %q is not %s (%s): a small m is milli, a large M mega. Write the symbol or the name.", member, name, u.symbol, usual)}
		}
		return u, nil
	}
	if len(found) > 1 {
		var meanings []string
		for _, u := range found {
			meanings = append(meanings, fmt.Sprintf("%s (%s)", u.symbol, strings.Fields(u.names)[0]))
		}
		return nil, &toolsrv.Error{Code: "ambiguous_unit", Message: fmt.Sprintf("%s: %q can mean %s: write the symbol or the name.", member, name, strings.Join(meanings, " or "))}
	}
	return nil, &toolsrv.Error{Code: "unknown_unit", Message: fmt.Sprintf("%s: there is no unit %q; did you mean %s? The tool list lists them all.", member, name, strings.Join(similar(low), ", "))}
}

// similar returns the names that are nearest to a name.
func similar(name string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var all []candidate
	for _, u := range units {
		for _, n := range strings.Fields(u.names) {
			all = append(all, candidate{n, distance(name, n)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, c := range all[:3] {
		out = append(out, c.name)
	}
	return out
}

// distance returns how many bytes to insert, remove or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
