package javascript

import (
	"regexp"
	"strings"
)

// zodImport is an import of zod's namespace by its name, z. esbuild leaves out what nobody uses of `import * as z`, but keeps all of a namespace that another
// module exports: 690 KB in place of 170, with zod's messages in fifty languages.
var zodImport = regexp.MustCompile(`(?m)^([ \t]*import[ \t]+)(?:z|\{[ \t]*z[ \t]*\}|\{[ \t]*z[ \t]*,([^}\n]*)\})([ \t]+from[ \t]*(?:"zod(?:/v4)?"|'zod(?:/v4)?'))`)

// withoutNamespace makes a file import z in the form that lets esbuild leave out the rest. Lines stay where they are,
// and columns in the usual form.
func withoutNamespace(source string) (rewritten string, changed bool) {
	found := zodImport.FindStringSubmatchIndex(source)
	if found == nil || strings.Contains(source[:found[0]], "`") { // within a template, it may be a text
		return source, false
	}
	part := func(i int) string { return source[found[2*i]:found[2*i+1]] }
	whole := part(1) + "* as z" + strings.Replace(part(3), "from ", "from", 1) // as long as "{ z } from "
	if found[4] >= 0 {
		whole += "; import {" + part(2) + "}" + part(3)
	}
	return source[:found[0]] + whole + source[found[1]:], true
}
