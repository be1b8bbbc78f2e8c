// Command weather is a module with a tool that asks an API for the weather, if the operator grants that.
package main

import (
	"fmt"
	"strconv"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/http"
	"github.com/toolsrv/toolsrv/sdk/go/settings"
)

type place struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90" description:"Degrees north."`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180" description:"Degrees east."`
}

type weather struct {
	Time        string  `json:"time" description:"When it was measured, in UTC."`
	Temperature float64 `json:"temperature"`
	Wind        float64 `json:"wind" description:"Its speed."`
	Text        string  `json:"text" description:"The weather in words."`
}

// Settings are what the operator can set.
type Settings struct {
	Units   string `json:"units" enum:"metric,imperial" default:"metric" description:"Of all answers."`
	Service string `json:"service" pattern:"^https://[^/?#]+$" default:"https://api.open-meteo.com" description:"The API, which may be another one of Open-Meteo's."`
}

var loaded = settings.Load[Settings]()

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "weather",
	Version:   "1.0.0",
	Needs: toolsrv.Needs{
		HTTP:     []string{"https://*.open-meteo.com/v1/"},
		Settings: Settings{},
	},
	Tools: []toolsrv.Tool{
		toolsrv.Func("now", "Tell the weather at a place on the earth as it is now: temperature, wind, sky.", now,
			toolsrv.Example{Arguments: `{"latitude": 48.86, "longitude": 2.35}`},
		).With(toolsrv.Options{Title: "Weather now", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.Yes}}),
	},
})

func main() {}

func now(c *toolsrv.Call, in place) (weather, error) {
	chosen, err := loaded.Get(c)
	if err != nil {
		return weather{}, err
	}
	url := chosen.Service + "/v1/forecast?latitude=" + degrees(in.Latitude) + "&longitude=" + degrees(in.Longitude) +
		"&current=temperature_2m,wind_speed_10m,weather_code"
	temperature, wind := "°C", "km/h"
	if chosen.Units == "imperial" {
		temperature, wind = "°F", "mph"
		url += "&temperature_unit=fahrenheit&wind_speed_unit=mph"
	}
	answer, err := http.Get(c, url)
	if err != nil {
		return weather{}, err
	}
	var told struct {
		Current struct {
			Time        string  `json:"time"`
			Temperature float64 `json:"temperature_2m"`
			Wind        float64 `json:"wind_speed_10m"`
			Code        int     `json:"weather_code"`
		} `json:"current"`
	}
	if err := answer.JSON(&told); err != nil {
		return weather{}, err
	}
	w := weather{Time: told.Current.Time, Temperature: told.Current.Temperature, Wind: told.Current.Wind}
	w.Text = fmt.Sprintf("%s, %v %s, wind %v %s", sky(told.Current.Code), w.Temperature, temperature, w.Wind, wind)
	return w, nil
}

// degrees returns a coordinate in the API's form, precise to some ten metres.
func degrees(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

// sky returns the meaning of a code of the World Meteorological Organization.
func sky(code int) string {
	for _, upTo := range []struct {
		last int
		text string
	}{
		{0, "clear sky"}, {2, "some clouds"}, {3, "overcast"}, {48, "fog"}, {57, "drizzle"}, {67, "rain"}, {77, "snow"},
		{82, "showers"}, {86, "snow showers"}, {99, "thunderstorm"},
	} {
		if code <= upTo.last {
			return upTo.text
		}
	}
	return "unknown weather"
}
