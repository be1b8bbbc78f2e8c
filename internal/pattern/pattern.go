// Package pattern matches paths of tools with patterns, which name tools and namespaces in configuration files and scopes.
//
// "math/add" matches the tool of that path, and "math" all tools of that namespace and of those below it. In a pattern, * matches any characters of
// one name, and a part ** matches any number of names: "*" matches every tool, "math/*" all of math, and "**/add" every tool with the name add. The
// first slash may be missing.
package pattern

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// The longest pattern and the longest name in bytes. No path that a tool can have is longer than 65.
const (
	maxPattern = 128
	maxName    = 64
)

// Match reports whether a pattern matches the tool at path, or a namespace that contains it. It allocates nothing, and takes at most as many steps as
// the product of both lengths.
func Match(pattern, path string) bool {
	pattern, path = strings.TrimPrefix(pattern, "/"), strings.TrimPrefix(path, "/")
	// On a mismatch, the last ** is made to match one name more; an earlier ** never needs to.
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
	return true // the rest of path, if there is any, is below the namespace that matches
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

// Check reports why a pattern could never match a tool, or nil.
func Check(pattern string) error {
	pattern = strings.TrimPrefix(pattern, "/")
	switch {
	case pattern == "":
		return errors.New(`the pattern is empty: name a tool or a namespace such as "math/add" or "math/*"`)
	case len(pattern) > maxPattern:
		return fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(pattern), maxPattern)
	}
	for part := range strings.SplitSeq(pattern, "/") {
		if part != "**" && strings.Contains(part, "**") {
			return fmt.Errorf("%q has ** next to other characters: write * there, or ** between two /", part)
		}
	}
	return CheckNames(pattern)
}

// CheckNames reports what is wrong with names joined by /, which may be parts of a pattern.
func CheckNames(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			return fmt.Errorf("%q has an empty part: remove the extra /", text.Short(path))
		}
		if strings.ContainsFunc(name, outside) {
			return fmt.Errorf("%q has a character that is not allowed in a name: use A-Z a-z 0-9 _ and -", text.Short(name))
		}
		if len(name) > maxName {
			return fmt.Errorf("%q has %d bytes; a name has at most %d", text.Short(name), len(name), maxName)
		}
	}
	return nil
}

// outside reports whether a character can't be in a pattern.
func outside(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '*':
		return false
	}
	return true
}
