// Command time is a module of tools for dates, times and time zones.
package main

import (
	"fmt"
	"time"
	_ "time/tzdata" // a sandbox has no files, so the module holds the zones: 380 KB

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type nowQuery struct {
	Zones []string `json:"zones" default:"[\"UTC\"]" minItems:"1" maxItems:"50" description:"Time zones by their IANA names, such as Europe/Berlin." examples:"[[\"Europe/Berlin\",\"Asia/Tokyo\"]]"`
}

type convertQuery struct {
	Time  string   `json:"time" description:"A time such as 2026-03-29T01:30:00Z, 2026-03-29 01:30 or 2026-03-29, or seconds since 1970." examples:"2026-03-29 01:30"`
	Zone  string   `json:"zone" default:"UTC" description:"The zone of a time that names none itself."`
	Zones []string `json:"zones" minItems:"1" maxItems:"50" description:"The zones to show the time in."`
}

type addQuery struct {
	Time         string   `json:"time" description:"The time to begin with, as in convert."`
	Zone         string   `json:"zone" default:"UTC" description:"The zone to calculate in: a day is from midnight to midnight there, 23 or 25 hours long where clocks change."`
	Years        int      `json:"years" default:"0" minimum:"-10000" maximum:"10000"`
	Months       int      `json:"months" default:"0" minimum:"-120000" maximum:"120000" description:"A month from January 31 is the last day of February."`
	Weeks        int      `json:"weeks" default:"0" minimum:"-1000000" maximum:"1000000"`
	Days         int      `json:"days" default:"0" minimum:"-4000000" maximum:"4000000"`
	BusinessDays int      `json:"business_days" default:"0" minimum:"-100000" maximum:"100000" description:"Days other than Saturdays, Sundays and holidays; added after the other days."`
	Holidays     []string `json:"holidays" default:"[]" maxItems:"1000" description:"Dates such as 2026-12-25 that are not business days."`
	Hours        int      `json:"hours" default:"0" minimum:"-100000000" maximum:"100000000" description:"Hours, minutes and seconds are time that passes, added after the days."`
	Minutes      int      `json:"minutes" default:"0" minimum:"-1000000000" maximum:"1000000000"`
	Seconds      int64    `json:"seconds" default:"0" minimum:"-400000000000" maximum:"400000000000"`
}

type differenceQuery struct {
	From     string   `json:"from" description:"A time, as in convert."`
	To       string   `json:"to" description:"A time, as in convert."`
	Zone     string   `json:"zone" default:"UTC" description:"The zone of times that name none themselves, and in which days are counted."`
	Holidays []string `json:"holidays" default:"[]" maxItems:"1000" description:"Dates such as 2026-12-25 that are not business days."`
}

// A moment is a time in a zone, in all the forms that callers ask for.
type moment struct {
	Time    string `json:"time" format:"date-time" description:"RFC 3339, with the offset of the zone."`
	Zone    string `json:"zone"`
	Short   string `json:"abbreviation" description:"The zone's abbreviation at that time."`
	Summer  bool   `json:"daylight_saving"`
	Weekday string `json:"weekday"`
	Week    string `json:"iso_week" description:"Year and week by ISO 8601."`
	YearDay int    `json:"day_of_year"`
	Unix    int64  `json:"unix" description:"Seconds since 1970."`
}

// A reading is one moment in several zones, with a note if the given time was unusual.
type reading struct {
	Times []moment `json:"times"`
	Note  string   `json:"note,omitempty" description:"Where the local time was skipped or happened twice because clocks changed."`
}

type sum struct {
	Start  moment `json:"start"`
	Result moment `json:"result"`
	Note   string `json:"note,omitempty" description:"Where the local time was skipped or happened twice because clocks changed."`
}

type span struct {
	Negative     bool    `json:"negative" description:"Whether to is before from; all figures count from the earlier to the later."`
	Years        int     `json:"years" description:"Years, months, days, hours, minutes and seconds together are the difference as people say it."`
	Months       int     `json:"months"`
	Days         int     `json:"days"`
	Hours        int     `json:"hours"`
	Minutes      int     `json:"minutes"`
	Seconds      float64 `json:"seconds"`
	CalendarDays int     `json:"calendar_days" description:"Midnights between the two."`
	BusinessDays int     `json:"business_days" description:"Business days from the first date on, before the last."`
	TotalSeconds float64 `json:"total_seconds"`
	TotalHours   float64 `json:"total_hours"`
}

// icons show a clock.
var icons = []toolsrv.Icon{{
	Src:   "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAyNCAyNCIgZmlsbD0ibm9uZSIgc3Ryb2tlPSIjNzc3IiBzdHJva2Utd2lkdGg9IjIiPjxjaXJjbGUgY3g9IjEyIiBjeT0iMTIiIHI9IjEwIi8+PHBhdGggZD0iTTEyIDZ2Nmw0IDIiLz48L3N2Zz4=",
	Sizes: []string{"any"},
}}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "time",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("now", "Return the current date and time in one or several time zones.", now,
			toolsrv.Example{Arguments: `{"zones": ["Europe/Berlin"]}`},
		).With(toolsrv.Options{Title: "Tell the time", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}, Icons: icons}),
		toolsrv.Func("convert", "Convert a time in one time zone to others, with its weekday, ISO week, daylight saving and Unix time.", convert,
			toolsrv.Example{
				Arguments: `{"time": "2026-07-01 09:00", "zone": "America/New_York", "zones": ["Europe/Berlin"]}`,
				Result: `{"times": [{"time": "2026-07-01T15:00:00+02:00", "zone": "Europe/Berlin", "abbreviation": "CEST", "daylight_saving": true,
					"weekday": "Wednesday", "iso_week": "2026-W27", "day_of_year": 182, "unix": 1782910800}]}`,
			},
		).With(toolsrv.Options{Title: "Convert between time zones", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}, Icons: icons}),
		toolsrv.Func("add", "Add years, months, weeks, days, business days, hours, minutes and seconds to a time; negative numbers go back.", add,
			toolsrv.Example{
				Arguments: `{"time": "2026-01-31", "months": 1}`,
				Result: `{"start": {"time": "2026-01-31T00:00:00Z", "zone": "UTC", "abbreviation": "UTC", "daylight_saving": false, "weekday": "Saturday", "iso_week": "2026-W05", "day_of_year": 31, "unix": 1769817600},
					"result": {"time": "2026-02-28T00:00:00Z", "zone": "UTC", "abbreviation": "UTC", "daylight_saving": false, "weekday": "Saturday", "iso_week": "2026-W09", "day_of_year": 59, "unix": 1772236800}}`,
			},
		).With(toolsrv.Options{Title: "Add to a time", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}, Icons: icons}),
		toolsrv.Func("difference", "Compute how long it is from one time to another: in calendar units, in business days and in total.", difference,
			toolsrv.Example{
				Arguments: `{"from": "2024-02-29", "to": "2026-03-02 12:00"}`,
				Result: `{"negative": false, "years": 2, "months": 0, "days": 2, "hours": 12, "minutes": 0, "seconds": 0,
					"calendar_days": 732, "business_days": 522, "total_seconds": 63288000, "total_hours": 17580}`,
			},
		).With(toolsrv.Options{Title: "Compute the time between", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}, Icons: icons}),
	},
})

func main() {}

func now(_ *toolsrv.Call, in nowQuery) (reading, error) {
	return tell(time.Now().Truncate(time.Second), in.Zones)
}

func convert(_ *toolsrv.Call, in convertQuery) (reading, error) {
	t, note, err := parse("time", in.Time, in.Zone)
	if err != nil {
		return reading{}, err
	}
	out, err := tell(t, in.Zones)
	out.Note = note
	return out, err
}

// tell returns a time in some zones.
func tell(t time.Time, zones []string) (out reading, err error) {
	for _, name := range zones {
		zone, err := load(name)
		if err != nil {
			return out, err
		}
		m, err := describe(t.In(zone))
		if err != nil {
			return out, err
		}
		out.Times = append(out.Times, m)
	}
	return out, nil
}

// describe describes a time in its zone.
func describe(t time.Time) (moment, error) {
	if t.Year() < 1 || t.Year() > 9999 {
		return moment{}, &toolsrv.Error{Code: "out_of_range", Message: "The result is not between the years 1 and 9999: take smaller numbers."}
	}
	year, week := t.ISOWeek()
	short, _ := t.Zone()
	return moment{
		Time:    t.Format(time.RFC3339Nano),
		Zone:    t.Location().String(),
		Short:   short,
		Summer:  t.IsDST(),
		Weekday: t.Weekday().String(),
		Week:    fmt.Sprintf("%04d-W%02d", year, week),
		YearDay: t.YearDay(),
		Unix:    t.Unix(),
	}, nil
}

func add(_ *toolsrv.Call, in addQuery) (sum, error) {
	t, note, err := parse("time", in.Time, in.Zone)
	if err != nil {
		return sum{}, err
	}
	zone, err := load(in.Zone)
	if err != nil {
		return sum{}, err
	}
	t = t.In(zone)
	out := sum{Note: note}
	if out.Start, err = describe(t); err != nil {
		return sum{}, err
	}
	free, err := holidays(in.Holidays)
	if err != nil {
		return sum{}, err
	}
	day := dateOf(t).addMonths(12*in.Years+in.Months).addDays(7*in.Weeks+in.Days).addBusinessDays(in.BusinessDays, free)
	if day != dateOf(t) {
		if t, note, err = at(day, clockOf(t), zone); err != nil {
			return sum{}, err
		}
		if note != "" {
			out.Note = note
		}
	}
	seconds := int64(in.Hours)*3600 + int64(in.Minutes)*60 + in.Seconds
	t = time.Unix(t.Unix()+seconds, int64(t.Nanosecond())).In(zone)
	out.Result, err = describe(t)
	return out, err
}

func difference(_ *toolsrv.Call, in differenceQuery) (out span, err error) {
	zone, err := load(in.Zone)
	if err != nil {
		return out, err
	}
	from, _, err := parse("from", in.From, in.Zone)
	if err != nil {
		return out, err
	}
	to, _, err := parse("to", in.To, in.Zone)
	if err != nil {
		return out, err
	}
	free, err := holidays(in.Holidays)
	if err != nil {
		return out, err
	}
	from, to = from.In(zone), to.In(zone)
	if out.Negative = to.Before(from); out.Negative {
		from, to = to, from
	}
	first, last := dateOf(from), dateOf(to)
	whole := to.Unix() - from.Unix()
	part := float64(to.Nanosecond()-from.Nanosecond()) / 1e9
	out.TotalSeconds = float64(whole) + part
	out.TotalHours = out.TotalSeconds / 3600
	out.CalendarDays = last.number() - first.number()
	out.BusinessDays = first.businessDaysUntil(last, free)

	// The difference in calendar units is as many whole months and days as fit, followed by the time that is left.
	months := (last.year-first.year)*12 + int(last.month) - int(first.month)
	begin := from
	for ; months > 0; months-- {
		if begin, _, err = at(first.addMonths(months), clockOf(from), zone); err != nil || !begin.After(to) {
			break
		}
	}
	if err != nil {
		return out, err
	}
	if months <= 0 {
		months, begin = 0, from
	}
	days := last.number() - dateOf(begin).number()
	rest := begin
	for ; days > 0; days-- {
		if rest, _, err = at(dateOf(begin).addDays(days), clockOf(from), zone); err != nil || !rest.After(to) {
			break
		}
	}
	if err != nil {
		return out, err
	}
	if days <= 0 {
		days, rest = 0, begin
	}
	left := to.Sub(rest)
	out.Years, out.Months, out.Days = months/12, months%12, days
	out.Hours = int(left / time.Hour)
	out.Minutes = int(left % time.Hour / time.Minute)
	out.Seconds = (left % time.Minute).Seconds()
	return out, nil
}
