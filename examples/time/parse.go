package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// common are zones that are loaded when the module starts, so that most calls need not load one, which takes 0.2 ms.
var common = preload("UTC", "Europe/London", "Europe/Paris", "Europe/Berlin", "America/New_York", "America/Chicago", "America/Los_Angeles",
	"America/Sao_Paulo", "Asia/Dubai", "Asia/Kolkata", "Asia/Shanghai", "Asia/Singapore", "Asia/Tokyo", "Australia/Sydney")

func preload(names ...string) map[string]*time.Location {
	zones := map[string]*time.Location{}
	for _, name := range names {
		if zone, err := time.LoadLocation(name); err == nil {
			zones[name] = zone
		}
	}
	return zones
}

// load returns the zone with this name.
func load(name string) (*time.Location, error) {
	if zone := common[name]; zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err == nil && name != "" && name != "Local" { // Go takes these two names for UTC and for the machine's zone
		return zone, nil
	}
	hint := "use an IANA name such as Europe/Berlin, America/New_York or UTC"
	if better, ok := usual(name); ok {
		hint = "use " + better
	} else if better, ok := spelt(name); ok {
		hint = "use " + better
	} else if strings.ContainsAny(name, "+-0123456789") {
		hint += "; an offset of whole hours is Etc/GMT-2 for UTC+2, with the sign turned round"
	}
	return nil, &toolsrv.Error{Code: "unknown_zone", Message: fmt.Sprintf("There is no time zone %.100q: %s.", name, hint)}
}

// spelt returns the zone whose name differs from the given one only in case, or by underscores in place of spaces.
func spelt(name string) (string, bool) {
	letters := []byte(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_")))
	for i, c := range letters {
		if c >= 'a' && c <= 'z' && (i == 0 || strings.IndexByte("/_-", letters[i-1]) >= 0) {
			letters[i] -= 'a' - 'A'
		}
	}
	for _, candidate := range []string{string(letters), strings.ToUpper(string(letters))} {
		if _, err := time.LoadLocation(candidate); err == nil && candidate != "" && candidate != "Local" {
			return candidate, true
		}
	}
	return "", false
}

// usual returns the zone that people usually mean by an abbreviation. It is only a hint, since most abbreviations have several meanings.
func usual(name string) (string, bool) {
	zone, ok := map[string]string{
		"CST": "America/Chicago (or Asia/Shanghai)", "CDT": "America/Chicago", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
		"EDT": "America/New_York", "MDT": "America/Denver", "BST": "Europe/London", "CEST": "Europe/Berlin",
		"IST": "Asia/Kolkata (or Europe/Dublin, Asia/Jerusalem)", "JST": "Asia/Tokyo", "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney",
		"BERLIN": "Europe/Berlin", "LONDON": "Europe/London", "PARIS": "Europe/Paris", "NEW YORK": "America/New_York", "TOKYO": "Asia/Tokyo", "Z": "UTC",
	}[strings.ToUpper(strings.TrimSpace(name))]
	return zone, ok
}

// parse reads the time in a member of the arguments. Without an offset, it is a time in the zone.
func parse(member, text, zoneName string) (t time.Time, note string, err error) {
	zone, err := load(zoneName)
	if err != nil {
		return t, "", err
	}
	s := strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07", "Mon, 02 Jan 2006 15:04:05 GMT", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00", "2006-01-02 15:04:05 -0700", time.RFC1123Z} {
		if t, err := time.Parse(layout, s); err == nil {
			return checked(member, text, t)
		}
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		local, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if t, note, err = at(dateOf(local), clockOf(local), zone); err != nil {
			return t, "", err
		}
		_, _, err = checked(member, text, t)
		return t, note, err
	}
	if day, err := time.Parse("20060102", s); err == nil { // as seconds it would be a day of 1970 that nobody means
		return t, "", &toolsrv.Error{Code: "invalid_time", Message: fmt.Sprintf("%s: is %.100q a date or seconds since 1970? Write the date as %s, or the seconds with a point: %s.0.", member, text, day.Format(time.DateOnly), s)}
	}
	if whole, part, ok := strings.Cut(s, "."); ok {
		// Python's time.time() has fractions of a second.
		seconds, err := strconv.ParseInt(whole, 10, 64)
		nanoseconds, also := strconv.ParseUint((part + "000000000")[:9], 10, 32)
		if err == nil && also == nil && part != "" && !strings.HasPrefix(whole, "-") {
			return checked(member, text, time.Unix(seconds, int64(nanoseconds)))
		}
	}
	if seconds, err := strconv.ParseInt(s, 10, 64); err == nil {
		return checked(member, text, time.Unix(seconds, 0))
	}
	return t, "", &toolsrv.Error{Code: "invalid_time", Message: fmt.Sprintf(
		"%s: %.100q is not a valid time: write it as 2026-03-29T01:30:00Z, 2026-03-29 01:30 or 2026-03-29, or as seconds since 1970.", member, text)}
}

// checked returns t if its year can be written.
func checked(member, text string, t time.Time) (time.Time, string, error) {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return t, "", &toolsrv.Error{Code: "out_of_range", Message: fmt.Sprintf(
			"%s: %.100q is not between the years 1 and 9999. A time since 1970 is taken in seconds, not in milliseconds.", member, text)}
	}
	return t, "", nil
}

// A clock is a time of day.
type clock struct{ hour, minute, second, nanosecond int }

func clockOf(t time.Time) clock { return clock{t.Hour(), t.Minute(), t.Second(), t.Nanosecond()} }

// at returns when a clock in a zone shows a time of day. If the clocks were put forward past this time, the result is later by the same amount. If
// they were put back and showed the time twice, the result is the first of the two. The note says so.
func at(d date, c clock, zone *time.Location) (t time.Time, note string, err error) {
	if d.year < 0 || d.year > 10000 {
		return t, "", &toolsrv.Error{Code: "out_of_range", Message: "The result is not between the years 1 and 9999: take smaller numbers."}
	}
	t = time.Date(d.year, d.month, d.day, c.hour, c.minute, c.second, c.nanosecond, zone)
	text := fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d in %s", d.year, d.month, d.day, c.hour, c.minute, c.second, zone)
	if clockOf(t) != c || dateOf(t) != d {
		// A skipped time is read with the offset from before the change.
		_, before := t.Add(-24 * time.Hour).Zone()
		t = time.Date(d.year, d.month, d.day, c.hour, c.minute, c.second, c.nanosecond, time.UTC).Add(-time.Duration(before) * time.Second).In(zone)
		return t, fmt.Sprintf("%s does not exist, because clocks are put forward: %s is taken.", text, t.Format(time.RFC3339)), nil
	}
	_, now := t.Zone()
	for _, other := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := t.Add(other).Zone()
		twin := t.Add(time.Duration(now-offset) * time.Second)
		if offset != now && clockOf(twin) == c && dateOf(twin) == d {
			if twin.Before(t) {
				t = twin
			}
			return t, fmt.Sprintf("%s happens twice, because clocks are put back: the first, %s, is taken.", text, t.Format(time.RFC3339)), nil
		}
	}
	return t, "", nil
}
