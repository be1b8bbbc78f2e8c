package main

import (
	"fmt"
	"sort"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// A date is a day of the calendar, without a time or zone.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	year, month, day := t.Date()
	return date{year, month, day}
}

// number counts days; the next date has one more.
func (d date) number() int {
	const day = 24 * 60 * 60
	seconds := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Unix()
	n := seconds / day
	if seconds%day < 0 {
		n--
	}
	return int(n)
}

// dateOfNumber returns the date of a number.
func dateOfNumber(n int) date { return dateOf(time.Unix(int64(n)*24*60*60, 0).UTC()) }

func (d date) addDays(n int) date { return dateOfNumber(d.number() + n) }

// addMonths adds months; a day that the month does not have becomes its last.
func (d date) addMonths(n int) date {
	months := d.year*12 + int(d.month) - 1 + n
	year, month := months/12, months%12
	if month < 0 {
		year, month = year-1, month+12
	}
	last := time.Date(year, time.Month(month+2), 0, 0, 0, 0, 0, time.UTC).Day()
	return date{year, time.Month(month + 1), min(d.day, last)}
}

// weekend reports whether a day number is a Saturday or a Sunday: day 0 was a Thursday.
func weekend(n int) bool { return ((n+3)%7+7)%7 >= 5 }

// holidays returns the numbers of dates that are holidays and not on a weekend, in order and each once.
func holidays(dates []string) ([]int, error) {
	var out []int
	seen := map[int]bool{}
	for i, text := range dates {
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, &toolsrv.Error{Code: "invalid_time", Message: fmt.Sprintf("holidays[%d]: %.100q is not a valid date: write it as 2026-12-25.", i, text)}
		}
		if n := dateOf(t).number(); !weekend(n) && !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	sort.Ints(out)
	return out, nil
}

// weekdaysBefore counts the days from Monday to Friday since day number 4, which was a Monday, and before day number n.
func weekdaysBefore(n int) int {
	weeks, rest := (n-4)/7, (n-4)%7
	if rest < 0 {
		weeks, rest = weeks-1, rest+7
	}
	return weeks*5 + min(rest, 5)
}

// businessDaysUntil counts the business days from d to the day before end. end must not be before d.
func (d date) businessDaysUntil(end date, free []int) int {
	from, to := d.number(), end.number()
	off := sort.SearchInts(free, to) - sort.SearchInts(free, from)
	return weekdaysBefore(to) - weekdaysBefore(from) - off
}

// addBusinessDays returns the date that is n business days after d, or before it if n is negative.
func (d date) addBusinessDays(n int, free []int) date {
	step := 1
	if n < 0 {
		step, n = -1, -n
	}
	at := d.number()
	for n > 0 {
		at += step
		if !weekend(at) && !contains(free, at) {
			n--
		}
	}
	return dateOfNumber(at)
}

func contains(sorted []int, n int) bool {
	i := sort.SearchInts(sorted, n)
	return i < len(sorted) && sorted[i] == n
}
