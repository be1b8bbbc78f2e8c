package main

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// compile returns the search's expression.
func (s *search) compile() (*regexp.Regexp, error) {
	flags := ""
	for flag, set := range map[string]bool{"i": s.IgnoreCase, "m": s.Multiline, "s": s.DotAll} {
		if set {
			flags += flag
		}
	}
	pattern := s.Pattern
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil {
		tree = flat(tree)
		if size(tree) > maxSize || depth(tree) > maxDepth || tree.MaxCap() > maxDepth {
			return nil, &toolsrv.Error{Code: "invalid_pattern", Message: "The pattern is too large for a sandbox: repeat less, nest less, or write * for {0,1000}."}
		}
		var re *regexp.Regexp
		if re, err = regexp.Compile(tree.String()); err == nil {
			return re, nil
		}
	}
	message := fmt.Sprintf("The pattern is not valid: %v.", err)
	if wrong, ok := toolsrv.AsType[*syntax.Error](err); ok {
		message = fmt.Sprintf("The pattern is broken at %.100q: %s. %s", wrong.Expr, wrong.Code, remedy(wrong))
	}
	return nil, &toolsrv.Error{Code: "invalid_pattern", Message: strings.TrimSpace(message)}
}

// The compiler of expressions writes repetitions out. It calls itself for each level of nesting, on a call stack whose size the operator chooses.
// The search, too, calls itself for each of several empty groups in a row.
const (
	maxDepth = 100
	maxSize  = 20_000
)

// flat writes repetitions without groups as a row of optional parts: a{1,3} as aa?a?. The compiler would nest them, a(a(a)?)?, which means the same
// but can be too deep for the call stack of a sandbox.
func flat(tree *syntax.Regexp) *syntax.Regexp {
	for i, sub := range tree.Sub {
		tree.Sub[i] = flat(sub)
	}
	if tree.Op != syntax.OpRepeat || tree.Max <= tree.Min || tree.MaxCap() > 0 || tree.Max*size(tree.Sub[0]) > maxSize {
		return tree
	}
	row := &syntax.Regexp{Op: syntax.OpConcat}
	optional := &syntax.Regexp{Op: syntax.OpQuest, Flags: tree.Flags, Sub: tree.Sub}
	for i := range tree.Max {
		if i < tree.Min {
			row.Sub = append(row.Sub, tree.Sub[0])
		} else {
			row.Sub = append(row.Sub, optional)
		}
	}
	return row
}

// size returns how many nodes an expression has once its repetitions are written out.
func size(tree *syntax.Regexp) int {
	n := 1
	for _, sub := range tree.Sub {
		n = min(n+size(sub), maxSize+1)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n+len(tree.Rune), maxSize+1)
}

// depth returns how deep an expression nests once its repetitions are written out.
func depth(tree *syntax.Regexp) int {
	deepest := 0
	for _, sub := range tree.Sub {
		deepest = max(deepest, depth(sub))
	}
	if tree.Op == syntax.OpRepeat && tree.Max > tree.Min {
		deepest += 3 * (tree.Max - tree.Min)
	}
	return deepest + 1
}

// remedy returns what to do about an error in a pattern, if its name alone does not help.
func remedy(wrong *syntax.Error) string {
	switch {
	case strings.HasPrefix(wrong.Expr, "(?=") || strings.HasPrefix(wrong.Expr, "(?!") || strings.HasPrefix(wrong.Expr, "(?<"):
		return "RE2 has no lookahead or lookbehind: match more, and take the part that you want with a group."
	case wrong.Code == syntax.ErrInvalidEscape && len(wrong.Expr) == 2 && wrong.Expr[1] >= '1' && wrong.Expr[1] <= '9':
		return "RE2 has no backreferences: match more, and compare the groups."
	case wrong.Code == syntax.ErrInvalidEscape:
		return "Only letters with a special meaning take a backslash; in JSON write a backslash twice."
	case wrong.Code == syntax.ErrMissingRepeatArgument:
		return "Write \\ before a * + or ? that means itself."
	case wrong.Code == syntax.ErrUnexpectedParen || wrong.Code == syntax.ErrMissingParen:
		return "Write \\ before a parenthesis that means itself."
	case wrong.Code == syntax.ErrInvalidRepeatSize:
		return "A repetition goes up to 1000."
	}
	return ""
}
