package config

import (
	"errors"
	"fmt"
	"strings"
)

// The longest pattern and the longest name in bytes. No path that a tool can have is longer than 65.
const (
	maxPattern = 128
	maxName    = 64
)

// matches reports whether a pattern matches the tool at path, or a namespace that holds it: "math" and "m*h" match
// math/add, and so do "math/*" and "**/add". In a pattern * stands for any characters of one name, and a part ** for
// any number of names, none included. It allocates nothing, and never takes longer than the product of both lengths.
func matches(pattern, path string) bool {
	pattern, path = strings.TrimPrefix(pattern, "/"), strings.TrimPrefix(path, "/")
	// Where the last ** was, the names that it stands for can grow; an earlier one never needs to.
	var retry bool
	var retryPattern, retryPath string
	for pattern != "" {
		part, rest, _ := strings.Cut(pattern, "/")
		if part == "**" {
			pattern, retry, retryPattern, retryPath = rest, true, rest, path
			continue
		}
		if path == "" {
			return false
		}
		name, below, _ := strings.Cut(path, "/")
		if matchesName(part, name) {
			pattern, path = rest, below
			continue
		}
		if !retry || retryPath == "" {
			return false
		}
		_, retryPath, _ = strings.Cut(retryPath, "/")
		pattern, path = retryPattern, retryPath
	}
	return true // and so does all that is left of path, which lies below
}

// matchesName reports whether one part of a pattern matches one name of a path.
func matchesName(part, name string) bool {
	star, retry := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(part) && part[p] == '*':
			star, retry = p, n
			p++
		case p < len(part) && part[p] == name[n]:
			p++
			n++
		case star >= 0:
			retry++
			p, n = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(part[p:], "*") == ""
}

// checkPattern reports why a pattern could never match a tool, or nil.
func checkPattern(pattern string) error {
	pattern = strings.TrimPrefix(pattern, "/")
	switch {
	case pattern == "":
		return errors.New(`the pattern is empty: name a tool or a namespace such as "math/add" or "math/*"`)
	case len(pattern) > maxPattern:
		return fmt.Errorf("the pattern has %d bytes, %d are allowed", len(pattern), maxPattern)
	}
	for part := range strings.SplitSeq(pattern, "/") {
		if part != "**" && strings.Contains(part, "**") {
			return fmt.Errorf("%q has ** beside other characters: write * there, or ** between two /", part)
		}
	}
	return checkNames(pattern)
}

func outsidePattern(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '*':
		return false
	}
	return true
}
