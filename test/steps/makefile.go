package main

import (
	"regexp"
	"strings"
)

// A block is a rule of a Makefile with its recipe, or a variable.
type block struct {
	text  string
	names []string // targets, or the variable with a $ before it; a block without names may concern all targets, such as settings of all commands
	needs []string // prerequisites
}

var (
	variable = regexp.MustCompile(`^(?:export +)?([A-Za-z_]+) *(?:[:?+]?=)`)
	rule     = regexp.MustCompile(`^([^\t:=]+):(.*)`)
	used     = regexp.MustCompile(`\$[({]([A-Za-z_]+)`)
)

// recipes returns the parts of a Makefile for some targets: their rules, the rules of their prerequisites, and the variables that these use.
func recipes(makefile string, targets []string) []string {
	wanted := map[string]bool{}
	for _, target := range targets {
		wanted[target] = true
	}
	blocks := blocks(makefile)
	taken := make([]bool, len(blocks))
	for more := true; more; {
		more = false
		for i, b := range blocks {
			if taken[i] || !b.means(wanted) {
				continue
			}
			taken[i], more = true, true
			for _, name := range b.needs {
				wanted[name] = true
			}
			for _, match := range used.FindAllStringSubmatch(b.text, -1) {
				wanted["$"+match[1]] = true
			}
		}
	}
	var texts []string
	for i, b := range blocks {
		if taken[i] {
			texts = append(texts, b.text)
		}
	}
	return texts
}

func (b *block) means(wanted map[string]bool) bool {
	for _, name := range b.names {
		if wanted[name] {
			return true
		}
	}
	return len(b.names) == 0
}

// blocks splits a Makefile into blocks. It joins lines that end with a backslash, and leaves out comments.
func blocks(makefile string) []block {
	var all []block
	for line := range strings.SplitSeq(strings.ReplaceAll(makefile, "\\\n", " "), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ".PHONY"):
		case strings.HasPrefix(line, "\t") && len(all) > 0:
			all[len(all)-1].text += "\n" + line
		default:
			b := block{text: line}
			if m := variable.FindStringSubmatch(line); m != nil {
				if !strings.HasPrefix(line, "export ") {
					b.names = []string{"$" + m[1]}
				}
			} else if m := rule.FindStringSubmatch(line); m != nil {
				b.names, b.needs = strings.Fields(m[1]), strings.Fields(m[2])
			}
			all = append(all, b)
		}
	}
	return all
}
