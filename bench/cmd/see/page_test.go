package main

import "testing"

func TestImported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, script, want string }{
		{"names", `import { a, b as c } from "./a.js";`, "./a.js"},
		{"lines", "import {\n  a,\n  b,\n} from \"../a.js\";", "../a.js"},
		{"all", `import * as a from "./a.js";`, "./a.js"},
		{"nothing", `import "./a.js";`, "./a.js"},
		{"passed on", `export { a } from "./a.js";`, "./a.js"},
		{"when it is needed", `loaded ??= import("./a.js");`, ""},
		{"a function with a type", "export function f() {\n  /** @type {import(\"./a.js\").A} */\n}", ""},
		{"a constant", `export const a = "./a.js";`, ""},
		{"another site's", `import a from "https://other.example/a.js";`, ""},
	} {
		got := ""
		if m := imported.FindStringSubmatch(test.script); m != nil {
			got = m[1]
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
