package javascript

import (
	"regexp"
	"strings"
)

// zodImport matches an import of zod's namespace under its name, z. esbuild leaves out the unused parts of `import * as z`, but keeps all of a
// namespace that another module exports: 690 KB instead of 170, with zod's messages in fifty languages.
var zodImport = regexp.MustCompile(`(?m)^([ \t]*import[ \t]+)(?:z|\{[ \t]*z[ \t]*\}|\{[ \t]*z[ \t]*,([^}\n]*)\})([ \t]+from[ \t]*(?:"zod(?:/v4)?"|'zod(?:/v4)?'))`)

// withoutNamespace rewrites a file's import of z so that esbuild can leave out the rest. Line numbers stay the same, and so do columns if the import
// has its usual form.
func withoutNamespace(source string) (rewritten string, changed bool) {
	found := zodImport.FindStringSubmatchIndex(source)
	if found == nil || strings.Contains(source[:found[0]], "`") { // inside a template, it may only be text
		return source, false
	}
	part := func(i int) string { return source[found[2*i]:found[2*i+1]] }
	whole := part(1) + "* as z" + strings.Replace(part(3), "from ", "from", 1) // has the same length as with "{ z } from ", so columns stay the same
	if found[4] >= 0 {
		whole += "; import {" + part(2) + "}" + part(3)
	}
	return source[:found[0]] + whole + source[found[1]:], true
}
