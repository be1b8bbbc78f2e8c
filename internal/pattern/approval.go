package pattern

import (
	"errors"
	"strings"
)

// An Approval is a scope such as "math/add@…": one tool, for as long as it has this fingerprint.
type Approval struct {
	Path        string // such as "/math/add"
	Fingerprint string // 64 hexadecimal digits
}

// ParseApproval reads such a scope. ok is false for a scope without a fingerprint. An error shows the scope only at its beginning and in quotes, if
// at all.
func ParseApproval(scope string) (a Approval, ok bool, err error) {
	path, fingerprint, ok := strings.Cut(scope, "@")
	if !ok {
		return a, false, nil
	}
	path = strings.TrimPrefix(path, "/")
	switch {
	case strings.Contains(path, "*"):
		return a, true, errors.New("a fingerprint belongs to one tool, so a pattern with * can't have one: name the tool's path before the @")
	case len(fingerprint) != 64 || strings.Trim(fingerprint, "0123456789abcdef") != "":
		return a, true, errors.New(`what follows the @ is not a fingerprint: copy the 64 digits of the tool's "fingerprint" in /tools`)
	case path == "" || len(path) > maxPattern:
		return a, true, errors.New(`there is no tool's path before the @: write one such as "math/add"`)
	}
	if err := CheckNames(path); err != nil {
		return a, true, err
	}
	return Approval{"/" + path, fingerprint}, true, nil
}
