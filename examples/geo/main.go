// Command geo is a module of tools that look up cities in a table, which the operator has put into a folder.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/files"
)

type query struct {
	Name string `json:"name" minLength:"1" maxLength:"100" description:"The name of a city, or how it begins, in any case." examples:"Paris,san"`
	Max  int    `json:"max" default:"5" minimum:"1" maximum:"50" description:"How many cities at most, the largest first."`
}

type position struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90" description:"Degrees north."`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180" description:"Degrees east."`
	Max       int     `json:"max" default:"3" minimum:"1" maximum:"50" description:"How many cities at most, the nearest first."`
}

type city struct {
	Name       string  `json:"name"`
	Country    string  `json:"country" description:"ISO 3166-1, two letters."`
	Latitude   float64 `json:"latitude"`
	Longitude  float64 `json:"longitude"`
	Population int64   `json:"population"`
}

type near struct {
	city
	Distance float64 `json:"distance_km"`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "geo",
	Version:   "1.0.0",
	Needs:     toolsrv.Needs{Files: []string{"geo"}},
	Tools: []toolsrv.Tool{
		toolsrv.Func("find", "Find cities by name: where they are, and how many people live there.", find,
			toolsrv.Example{Arguments: `{"name": "paris"}`, Result: `[{"name":"Paris","country":"FR","latitude":48.8566,"longitude":2.3522,"population":2103000}]`},
		).With(toolsrv.Options{Title: "Find cities", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
		toolsrv.Func("nearest", "Find the cities that are nearest to a place, with their distance in km.", nearest,
			toolsrv.Example{Arguments: `{"latitude": 48.8, "longitude": 2.13, "max": 1}`},
		).With(toolsrv.Options{Title: "Nearest cities", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

func find(c *toolsrv.Call, in query) ([]city, error) {
	begin := strings.ToLower(in.Name)
	var found []city
	err := cities(c, func(ci city) {
		if strings.HasPrefix(strings.ToLower(ci.Name), begin) {
			found = append(found, ci)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &toolsrv.Error{Code: "not_found", Status: 404, Message: fmt.Sprintf("No city's name begins with %q: try less of it, or the English name.", in.Name)}
	}
	slices.SortStableFunc(found, func(a, b city) int { return cmp.Compare(b.Population, a.Population) })
	return found[:min(in.Max, len(found))], nil
}

func nearest(c *toolsrv.Call, in position) ([]near, error) {
	var found []near
	err := cities(c, func(ci city) {
		away := distance(in.Latitude, in.Longitude, ci.Latitude, ci.Longitude)
		found = append(found, near{ci, math.Round(away*10) / 10})
	})
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.Distance, b.Distance) })
	return found[:min(in.Max, len(found))], err
}

// cities calls take with each city of cities.csv in the granted folder, which has the columns name, country, latitude, longitude and
// population, without quotes. It is read in each call, so that a new file is seen at once.
func cities(c *toolsrv.Call, take func(city)) error {
	file, err := files.Dir(c, "geo").Open("cities.csv")
	if err != nil {
		return unreadable(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		if number == 1 {
			continue // the names of the columns
		}
		ci, err := parse(lines.Text())
		if err != nil {
			return unreadable(fmt.Errorf("line %d: %w", number, err))
		}
		take(ci)
	}
	if err := lines.Err(); err != nil {
		return unreadable(err)
	}
	return nil
}

// unreadable returns the error of a table that can't be read, which the operator has to mend.
func unreadable(err error) error {
	message := "the folder geo has no cities.csv that can be read: "
	if errors.Is(err, fs.ErrNotExist) {
		return &toolsrv.Error{Code: "no_table", Status: 503, Message: message + "it does not exist."}
	}
	return &toolsrv.Error{Code: "bad_table", Status: 503, Message: message + err.Error()}
}

func parse(line string) (city, error) {
	fields := strings.Split(line, ",")
	if len(fields) != 5 {
		return city{}, fmt.Errorf("it has %d columns, want 5", len(fields))
	}
	latitude, err1 := strconv.ParseFloat(fields[2], 64)
	longitude, err2 := strconv.ParseFloat(fields[3], 64)
	population, err3 := strconv.ParseInt(fields[4], 10, 64)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return city{}, err
		}
	}
	return city{fields[0], fields[1], latitude, longitude, population}, nil
}

// distance returns the distance between two places in km, on a sphere of the size of the earth.
func distance(lat1, lon1, lat2, lon2 float64) float64 {
	const radius, degree = 6371.0088, math.Pi / 180
	a := math.Pow(math.Sin((lat2-lat1)*degree/2), 2) + math.Cos(lat1*degree)*math.Cos(lat2*degree)*math.Pow(math.Sin((lon2-lon1)*degree/2), 2)
	return 2 * radius * math.Asin(math.Sqrt(min(a, 1)))
}
