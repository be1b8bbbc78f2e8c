package oci

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A version is the version in a tag such as 1.2.0 or v1.2. Missing parts are -1.
type version struct{ major, minor, patch int }

// versionOf parses a tag. A tag with anything but numbers is not a version, so that a prerelease is served only if its tag is named.
func versionOf(tag string) (v version, ok bool) {
	parts := strings.Split(strings.TrimPrefix(tag, "v"), ".")
	if len(parts) > 3 {
		return v, false
	}
	v = version{-1, -1, -1}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || part[0] == '+' || len(part) > 1 && part[0] == '0' {
			return v, false
		}
		*[]*int{&v.major, &v.minor, &v.patch}[i] = int(n)
	}
	return v, true
}

func (v version) compare(w version) int {
	return cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch))
}

// CompareTags orders tags by their versions. Tags without a version come first.
func CompareTags(a, b string) int {
	v, ok := versionOf(a)
	w, other := versionOf(b)
	switch {
	case ok && other:
		return v.compare(w)
	case ok:
		return 1
	case other:
		return -1
	}
	return 0
}

// CheckVersion returns an error unless a version has only numbers, such as 1.2.0.
func CheckVersion(s string) error {
	if _, ok := versionOf(s); !ok {
		return fmt.Errorf("%.100q is not a version: write one such as 1.2.0", s)
	}
	return nil
}

// A Range is a set of versions: "~1.2" includes all versions 1.2.x, "~1.2.3" those from 1.2.3 on, and "~1" all versions 1.x.
type Range struct{ from version }

// ParseRange parses a range.
func ParseRange(s string) (Range, error) {
	v, ok := versionOf(strings.TrimPrefix(s, "~"))
	if !ok || !strings.HasPrefix(s, "~") || strings.HasPrefix(s, "~v") {
		return Range{}, fmt.Errorf("%.100q is not a range of versions: write one such as ~1.2", s)
	}
	return Range{v}, nil
}

// Newest returns the tag of the newest version in the range. It ignores tags such as 1.2, which move.
func (r Range) Newest(tags []string) (tag string, err error) {
	var newest, last version
	var outside string // the newest tag that is not in the range
	for _, t := range tags {
		v, ok := versionOf(t)
		if !ok || v.minor < 0 || v.patch < 0 {
			continue
		}
		in := v.major == r.from.major && (r.from.minor < 0 || v.minor == r.from.minor) && v.compare(r.from) >= 0
		if in && (tag == "" || v.compare(newest) > 0 || v == newest && t < tag) {
			tag, newest = t, v
		}
		if !in && (outside == "" || v.compare(last) > 0) {
			outside, last = t, v
		}
	}
	switch {
	case tag == "" && outside != "":
		return "", fmt.Errorf("no tag is a version in the range: the newest outside it is %s", text.Short(outside))
	case tag == "":
		return "", errors.New("no tag is a version in the range: tags with three numbers count, such as 1.2.0")
	}
	return tag, nil
}
