package secret

import (
	"errors"
	"strings"
)

// Fill returns a text in which each ${secret:name} is replaced by what get returns for the name. The error is get's, or says what is wrong with the
// text without showing it.
func Fill(s string, get func(name string) (string, error)) (string, error) {
	filled := ""
	for {
		before, rest, found := strings.Cut(s, "${")
		if filled += before; !found {
			return filled, nil
		}
		inner, after, closed := strings.Cut(rest, "}")
		name, isSecret := strings.CutPrefix(inner, "secret:")
		if !closed || !isSecret || CheckName(name) != nil {
			return "", errors.New("${ must be followed by secret:, a name and }, as in ${secret:api_key}")
		}
		value, err := get(name)
		if err != nil {
			return "", err
		}
		filled, s = filled+value, after
	}
}
