package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

func call[T any](t *testing.T, tool, arguments string) (out T, err error) {
	t.Helper()
	result, err := toolsrvtest.Call(t, module, tool, arguments)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(result), &out); err != nil {
		t.Fatalf("%s: %v", result, err)
	}
	return out, nil
}

func TestNow(t *testing.T) {
	t.Parallel()
	got, err := call[reading](t, "now", `{"zones": ["UTC", "Asia/Kolkata"]}`)
	if err != nil || len(got.Times) != 2 {
		t.Fatalf("got %+v, %v, want two times", got, err)
	}
	if age := time.Now().Unix() - got.Times[0].Unix; age < 0 || age > 60 || got.Times[1].Unix-got.Times[0].Unix != 0 || !strings.HasSuffix(got.Times[1].Time, "+05:30") {
		t.Errorf("got %+v, want the time now, in UTC and at +05:30", got)
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, time, zone, to, want, note string }{
		{"offset told", "2026-03-29T01:30:00+02:00", "Asia/Tokyo", "UTC", "2026-03-28T23:30:00Z", ""},
		{"space", "2026-03-29 01:30:00Z", "Asia/Tokyo", "UTC", "2026-03-29T01:30:00Z", ""},
		{"no seconds", "2026-03-29T01:30Z", "UTC", "UTC", "2026-03-29T01:30:00Z", ""},
		{"fraction", "2026-03-29T01:30:00.25Z", "UTC", "UTC", "2026-03-29T01:30:00.25Z", ""},
		{"mail", "Sun, 29 Mar 2026 01:30:00 +0100", "UTC", "UTC", "2026-03-29T00:30:00Z", ""},
		{"offset without a colon", "2026-03-29T01:30:00+0200", "UTC", "UTC", "2026-03-28T23:30:00Z", ""},
		{"offset of hours", "2026-03-29 01:30:00+02", "UTC", "UTC", "2026-03-28T23:30:00Z", ""},
		{"HTTP", "Sun, 29 Mar 2026 01:30:00 GMT", "Asia/Tokyo", "UTC", "2026-03-29T01:30:00Z", ""},
		{"Unix time with a fraction", "1774747800.25", "UTC", "UTC", "2026-03-29T01:30:00.25Z", ""},
		{"Unix time with a long fraction", "0.1234567891", "UTC", "UTC", "1970-01-01T00:00:00.123456789Z", ""},
		{"eight digits that are seconds", "20260329.0", "UTC", "UTC", "1970-08-23T11:52:09Z", ""},
		{"local", "2026-07-01 09:00", "America/New_York", "UTC", "2026-07-01T13:00:00Z", ""},
		{"date", "2026-07-01", "Asia/Tokyo", "UTC", "2026-06-30T15:00:00Z", ""},
		{"Unix time", "0", "UTC", "Europe/Berlin", "1970-01-01T01:00:00+01:00", ""},
		{"before 1970", "-1", "UTC", "UTC", "1969-12-31T23:59:59Z", ""},
		{"space around", " 2026-07-01 ", "UTC", "UTC", "2026-07-01T00:00:00Z", ""},
		{"skipped", "2026-03-29 02:30", "Europe/Berlin", "Europe/Berlin", "2026-03-29T03:30:00+02:00", "does not exist"},
		{"skipped by half an hour", "2026-10-04 02:15", "Australia/Lord_Howe", "Australia/Lord_Howe", "2026-10-04T02:45:00+11:00", "does not exist"},
		{"a day that was skipped", "2011-12-30 12:00", "Pacific/Apia", "Pacific/Apia", "2011-12-31T12:00:00+14:00", "does not exist"},
		{"twice", "2026-10-25 02:30", "Europe/Berlin", "Europe/Berlin", "2026-10-25T02:30:00+02:00", "happens twice"},
		{"twice, offset told", "2026-10-25T02:30:00+01:00", "Europe/Berlin", "Europe/Berlin", "2026-10-25T02:30:00+01:00", ""},
		{"just before twice", "2026-10-25 01:59", "Europe/Berlin", "UTC", "2026-10-24T23:59:00Z", ""},
		{"just after twice", "2026-10-25 03:00", "Europe/Berlin", "UTC", "2026-10-25T02:00:00Z", ""},
		{"first year", "0001-01-01", "UTC", "UTC", "0001-01-01T00:00:00Z", ""},
		{"last year", "9999-12-31 23:59:59", "UTC", "UTC", "9999-12-31T23:59:59Z", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			arguments, _ := json.Marshal(map[string]any{"time": test.time, "zone": test.zone, "zones": []string{test.to}})
			got, err := call[reading](t, "convert", string(arguments))
			if err != nil || len(got.Times) != 1 || got.Times[0].Time != test.want || (test.note == "") != (got.Note == "") || !strings.Contains(got.Note, test.note) {
				t.Errorf("got %+v, %v, want %s and a note with %q", got, err, test.want, test.note)
			}
		})
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, arguments, want string }{
		{"nothing", `{"time":"2026-10-25T02:30:00+01:00","zone":"Europe/Berlin"}`, "2026-10-25T02:30:00+01:00"},
		{"end of the month", `{"time":"2024-01-31","months":1}`, "2024-02-29T00:00:00Z"},
		{"leap day", `{"time":"2024-02-29","years":1}`, "2025-02-28T00:00:00Z"},
		{"months back over a year", `{"time":"2026-01-31","months":-2}`, "2025-11-30T00:00:00Z"},
		{"months of many years", `{"time":"2026-03-15","years":-2,"months":25}`, "2026-04-15T00:00:00Z"},
		{"days over a change of clocks", `{"time":"2026-03-28 12:00","zone":"Europe/Berlin","days":1}`, "2026-03-29T12:00:00+02:00"},
		{"hours over a change of clocks", `{"time":"2026-03-28 12:00","zone":"Europe/Berlin","hours":24}`, "2026-03-29T13:00:00+02:00"},
		{"days into a gap", `{"time":"2026-03-28 02:30","zone":"Europe/Berlin","days":1}`, "2026-03-29T03:30:00+02:00"},
		{"weeks", `{"time":"2026-01-01","weeks":-1}`, "2025-12-25T00:00:00Z"},
		{"seconds", `{"time":"2026-01-01","hours":-1,"minutes":59,"seconds":61}`, "2026-01-01T00:00:01Z"},
		{"zone of the calculation", `{"time":"2026-01-31T23:00:00Z","zone":"Asia/Tokyo","months":1}`, "2026-03-01T08:00:00+09:00"},
		{"business days", `{"time":"2026-12-23","business_days":2,"holidays":["2026-12-25","2026-12-26"]}`, "2026-12-28T00:00:00Z"},
		{"business days from a weekend", `{"time":"2026-01-03","business_days":1}`, "2026-01-05T00:00:00Z"},
		{"business days back", `{"time":"2026-01-05","business_days":-1}`, "2026-01-02T00:00:00Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call[sum](t, "add", test.arguments)
			if err != nil || got.Result.Time != test.want {
				t.Errorf("%s: got %+v, %v, want %s", test.arguments, got.Result, err, test.want)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, arguments string
		want            span
	}{
		{"nothing", `{"from":"2026-01-01","to":"2026-01-01"}`, span{}},
		{"a year", `{"from":"2025-03-01","to":"2026-03-01"}`, span{Years: 1, CalendarDays: 365, BusinessDays: 260, TotalSeconds: 365 * 86400, TotalHours: 8760}},
		{"a month that is short", `{"from":"2026-01-31","to":"2026-03-01"}`, span{Months: 1, Days: 1, CalendarDays: 29, BusinessDays: 20, TotalSeconds: 29 * 86400, TotalHours: 696}},
		{"back", `{"from":"2026-01-02 00:00:01","to":"2026-01-01"}`, span{Negative: true, Days: 1, Seconds: 1, CalendarDays: 1, BusinessDays: 1, TotalSeconds: 86401, TotalHours: 86401.0 / 3600}},
		{"fractions of a second", `{"from":"2026-01-01T00:00:00.75Z","to":"2026-01-01T00:00:01.5Z"}`, span{Seconds: 0.75, TotalSeconds: 0.75, TotalHours: 0.75 / 3600}},
		{"a long day", `{"from":"2026-10-25","to":"2026-10-26","zone":"Europe/Berlin"}`, span{Days: 1, CalendarDays: 1, TotalSeconds: 90000, TotalHours: 25}},
		{"holidays", `{"from":"2026-12-21","to":"2026-12-28","holidays":["2026-12-25","2026-12-25","2026-12-26"]}`, span{Days: 7, CalendarDays: 7, BusinessDays: 4, TotalSeconds: 7 * 86400, TotalHours: 168}},
		{"across midnight", `{"from":"2026-01-01 23:30","to":"2026-01-02 00:30"}`, span{Hours: 1, CalendarDays: 1, BusinessDays: 1, TotalSeconds: 3600, TotalHours: 1}},
		{"before 1970", `{"from":"1969-12-25","to":"1970-01-05"}`, span{Days: 11, CalendarDays: 11, BusinessDays: 7, TotalSeconds: 11 * 86400, TotalHours: 264}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call[span](t, "difference", test.arguments)
			if err != nil || got != test.want {
				t.Errorf("%s: got %+v, %v\nwant %+v", test.arguments, got, err, test.want)
			}
		})
	}
}

func TestSlips(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, tool, arguments, want string }{
		{"zone", "now", `{"zones":["Middle/Earth"]}`, `no time zone "Middle/Earth": use an IANA name`},
		{"abbreviation", "now", `{"zones":["PST"]}`, "use America/Los_Angeles"},
		{"city", "now", `{"zones":["berlin"]}`, "use Europe/Berlin"},
		{"zone in small letters", "now", `{"zones":["america/new york"]}`, "use America/New_York"},
		{"UTC in small letters", "now", `{"zones":["utc"]}`, "use UTC"},
		{"offset as a zone", "now", `{"zones":["UTC+2"]}`, "is Etc/GMT-2 for UTC+2"},
		{"date or seconds", "convert", `{"time":"20260329","zones":["UTC"]}`, "Write the date as 2026-03-29"},
		{"only a point", "convert", `{"time":"1.","zones":["UTC"]}`, "is not a valid time"},
		{"sign after the point", "convert", `{"time":"1.+5","zones":["UTC"]}`, "is not a valid time"},
		{"empty zone", "now", `{"zones":[""]}`, "no time zone"},
		{"the machine's zone", "now", `{"zones":["Local"]}`, "no time zone"},
		{"path", "now", `{"zones":["../../etc/passwd"]}`, "no time zone"},
		{"no zones", "now", `{"zones":[]}`, "zones"},
		{"words", "convert", `{"time":"tomorrow","zones":["UTC"]}`, "time: \"tomorrow\" is not a valid time"},
		{"no such day", "convert", `{"time":"2026-02-30","zones":["UTC"]}`, "is not a valid time"},
		{"American", "convert", `{"time":"3/29/2026","zones":["UTC"]}`, "write it as 2026-03-29"},
		{"milliseconds", "convert", `{"time":"1774747800000000","zones":["UTC"]}`, "in seconds, not in milliseconds"},
		{"too far", "add", `{"time":"2026-01-01","years":9000}`, "between the years 1 and 9999"},
		{"too far back", "add", `{"time":"2026-01-01","hours":-100000000}`, "between the years 1 and 9999"},
		{"holiday", "difference", `{"from":"2026-01-01","to":"2026-01-02","holidays":["Christmas"]}`, `holidays[0]: "Christmas" is not a valid date`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, test.tool, test.arguments)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %s, %v, want an error with %q", got, err, test.want)
			}
		})
	}
}

// TestBusinessDays counts them in two ways: by arithmetic, and day by day.
func TestBusinessDays(t *testing.T) {
	t.Parallel()
	free, _ := holidays([]string{"1969-12-25", "1970-01-01", "1970-01-03"})
	start := date{1969, 12, 20}
	slow := 0
	for n := range 40 {
		end := start.addDays(n)
		if got := start.businessDaysUntil(end, free); got != slow {
			t.Errorf("until %v: got %d, want %d", end, got, slow)
		}
		if !weekend(end.number()) && !contains(free, end.number()) {
			slow++
		}
	}
}
