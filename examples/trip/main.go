// Command trip is a module with a tool that asks three others: geo/find, units/convert and time/add.
package main

import (
	"fmt"
	"math"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/tools"
)

type trip struct {
	From  string  `json:"from" minLength:"1" maxLength:"100" description:"The city where it begins." examples:"Paris"`
	To    string  `json:"to" minLength:"1" maxLength:"100" description:"The city where it ends." examples:"Berlin"`
	Speed float64 `json:"speed" default:"800" exclusiveMinimum:"0" maximum:"100000" description:"In km/h."`
	Start string  `json:"start" description:"When it begins: a date and time, with the difference to UTC." examples:"2026-05-01T09:00:00+02:00"`
	Unit  string  `json:"unit" default:"km" maxLength:"50" description:"The unit of the distance." examples:"mi"`
}

type plan struct {
	Distance float64 `json:"distance" description:"As the crow flies."`
	Unit     string  `json:"unit"`
	Arrival  string  `json:"arrival"`
	Text     string  `json:"text"`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "trip",
	Version:   "1.0.0",
	Needs:     toolsrv.Needs{Tools: []string{"geo/find", "units/convert", "time/add"}},
	Tools: []toolsrv.Tool{
		toolsrv.Func("plan", "Tell how far it is from one city to another, and when somebody arrives there who goes straight at a given speed.", makePlan,
			toolsrv.Example{Arguments: `{"from": "Paris", "to": "Berlin", "start": "2026-05-01T09:00:00+02:00", "unit": "mi"}`},
		).With(toolsrv.Options{Title: "Plan a trip", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

// The arguments and results of the other tools, as far as they are needed here.
type (
	name struct {
		Name string `json:"name"`
		Max  int    `json:"max"`
	}
	city struct {
		Name      string  `json:"name"`
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	}
	conversion struct {
		Value  float64 `json:"value"`
		From   string  `json:"from"`
		To     string  `json:"to"`
		Digits int     `json:"digits"`
	}
	converted struct {
		Value float64 `json:"value"`
		Unit  string  `json:"unit"`
	}
	addition struct {
		Time    string `json:"time"`
		Minutes int64  `json:"minutes"`
	}
	added struct {
		Result struct {
			Time string `json:"time"`
		} `json:"result"`
	}
)

func makePlan(c *toolsrv.Call, in trip) (plan, error) {
	from, err := find(c, "from", in.From)
	if err != nil {
		return plan{}, err
	}
	to, err := find(c, "to", in.To)
	if err != nil {
		return plan{}, err
	}
	km := distance(from, to)
	far, err := tools.Call[converted](c, "units/convert", conversion{Value: km, From: "km", To: in.Unit, Digits: 4})
	if err != nil {
		return plan{}, refused("unit", err)
	}
	arrival, err := tools.Call[added](c, "time/add", addition{Time: in.Start, Minutes: int64(math.Round(km / in.Speed * 60))})
	if err != nil {
		return plan{}, refused("start", err)
	}
	text := fmt.Sprintf("%s to %s: %v %s, there at %s", from.Name, to.Name, far.Value, far.Unit, arrival.Result.Time)
	return plan{far.Value, far.Unit, arrival.Result.Time, text}, nil
}

// find returns the largest city with the name in an argument.
func find(c *toolsrv.Call, argument, called string) (city, error) {
	found, err := tools.Call[[]city](c, "geo/find", name{called, 1})
	if err != nil {
		return city{}, refused(argument, err)
	}
	if len(found) == 0 {
		return city{}, &toolsrv.Error{Code: "not_found", Message: fmt.Sprintf("The argument %q: there is no city %q.", argument, called)}
	}
	return found[0], nil
}

// refused returns the error for an argument that another tool has refused, which the caller has to correct. Other errors are returned unchanged.
func refused(argument string, err error) error {
	f, ok := toolsrv.AsType[*toolsrv.Failure](err)
	if !ok || f.Code != "tool_error" {
		return err
	}
	return &toolsrv.Error{Code: f.ToolCode, Message: fmt.Sprintf("The argument %q: %s", argument, f.Message)}
}

// distance returns the distance between two cities in km, on a sphere of the size of the earth.
func distance(a, b city) float64 {
	const radius, degree = 6371.0088, math.Pi / 180
	h := math.Pow(math.Sin((b.Latitude-a.Latitude)*degree/2), 2) +
		math.Cos(a.Latitude*degree)*math.Cos(b.Latitude*degree)*math.Pow(math.Sin((b.Longitude-a.Longitude)*degree/2), 2)
	return 2 * radius * math.Asin(math.Sqrt(min(h, 1)))
}
