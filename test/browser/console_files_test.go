package browser_test

import (
	"os"
	"strings"
	"testing"
)

// version returns the module of calc with a different section.
func version(t *testing.T, of byte) string {
	t.Helper()
	module, err := os.ReadFile("../../examples/calc/calc.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return string(append(module, 0, 3, 1, 'x', of))
}

// TestConsolePut puts a file and a new version of it, loses a race against somebody else, and removes the file.
func TestConsolePut(t *testing.T) {
	t.Parallel()
	server := serve(t, administered(), add())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.tolerate("status of 412") // somebody else was first
	p.tolerate("status of 422") // what is refused
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("files", "Files")
	p.read("The server has no files of tools.")
	p.check()

	p.button("Put a file…")
	p.see("dialog[open]")
	p.check()
	p.pick("calc.wasm", version(t, '1'))
	p.button("Check it")
	p.read("It is new:")
	if shown := p.shown(); !strings.Contains(shown, "Tools that come\n/calc/evaluate") || strings.Contains(shown, "Tools that change") {
		t.Errorf("the dialog shows %s", shown)
	}
	p.check()
	p.yes()
	p.read("calc.wasm is served: /calc/evaluate.")
	p.read("1 file")
	p.check()

	// The same file is put again, and then another version while somebody else puts a third one.
	p.button("Put a file…")
	p.pick("calc.wasm", version(t, '1'))
	p.button("Check it")
	p.read("has just this file already")
	if eval[bool](p, "[...document.querySelectorAll('dialog button')].some((b) => b.innerText === 'Put it' && !b.ariaDisabled)") {
		t.Error("a file that changes nothing can be put")
	}
	p.pick("calc.wasm", version(t, '2'))
	p.until("!document.body.innerText.includes('has just this file already')")
	p.button("Check it")
	p.read("It replaces version")
	p.read("Tools that change\n/calc/evaluate")
	put(t, server, []byte(version(t, '3')))
	p.yes()
	p.read("Somebody else has changed it")
	p.button("Check it")
	p.until("document.querySelector('dialog .danger:not([aria-disabled])')")
	p.yes()
	p.read("calc.wasm is served: /calc/evaluate.")

	// The file that is removed is the one that was shown.
	p.button("Remove")
	p.read("Tools that go\n/calc/evaluate")
	p.check()
	put(t, server, []byte(version(t, '4')))
	p.yes()
	p.read("Somebody else has changed it")
	p.button("Cancel")
	p.until("!document.querySelector('dialog')")
	p.button("Remove")
	p.read("Tools that go\n/calc/evaluate")
	p.yes()
	p.read("calc.wasm is removed.")
	p.read("The server has no files of tools.")
	p.tool("/calc/evaluate")
	p.read("no longer serves this tool")
	for _, width := range []int64{1000, 1280, 1900} { // both when the bar has one line and when it has two
		p.light(width)
		if below := eval[int](p, "document.documentElement.scrollHeight - innerHeight"); below > 0 {
			t.Errorf("%d wide, the list of tools has %d pixels below the window", width, below)
		}
	}
}

// TestConsolePutRefused puts files that the server refuses, and files that must not even be sent.
func TestConsolePutRefused(t *testing.T) {
	t.Parallel()
	server := serve(t, administered()+declared("the-token-of-a-reader", "reader", "*", "admin:read"), add())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.tolerate("status of 422")
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("files", "Files")
	p.button("Put a file…")
	p.asked()
	p.pick("none.wasm", "")
	p.button("Check it")
	p.read("would be refused")
	p.do(script("window.asked = []"))

	const hostile = `<img src=x onerror="window.owned = 1">` + "\u202E.wasm"
	p.pick(hostile, "not a module")
	p.button("Check it")
	p.read("can't be the name of a tool file")
	p.intact("a hostile name")
	p.check()
	for name, why := range map[string]string{"../calc.wasm": "can't be the name", "/etc/calc.wasm": "can't be the name", "calc.py": "must end in .wasm", "calc.wasm": "would be refused", strings.Repeat("a", 600) + ".wasm": "512"} {
		p.fill("Name on the server", name)
		p.until("!document.querySelector('dialog [role=alert]').innerText")
		p.button("Check it")
		p.until("document.querySelector('dialog [role=alert]').innerText.includes(" + quoted(why) + ")")
	}
	p.do(script("window.asked = []"))
	drop := `{ const all = new DataTransfer(); all.items.add(new File([new Uint8Array(LENGTH)], "NAME")); document.querySelector("article").dispatchEvent(new DragEvent("drop", {dataTransfer: all, bubbles: true, cancelable: true})); }`
	for _, large := range [][3]string{{"(64 << 20) + 1", "large.wasm", "at most 64 MiB of a module"}, {"(16 << 20) + 1", "large.py", "at most 16 MiB of a script"}} {
		p.do(script(strings.NewReplacer("LENGTH", large[0], "NAME", large[1]).Replace(drop)))
		p.read(large[2])
		p.button("Check it")
		p.read("Choose a file first")
	}
	if asked := eval[[]string](p, "asked.filter((a) => a.includes('/put'))"); len(asked) > 0 {
		t.Errorf("a file that is too large is sent: %q", asked)
	}
	p.do(script(strings.NewReplacer("LENGTH", "3", "NAME", "small.wasm").Replace(drop))) // a dropped file is chosen
	p.read("small.wasm, 3 bytes")
	p.fill("Name on the server", "small.wasm") // the typed name stays
	p.button("Check it")
	p.read("would be refused")
	p.button("Cancel")
	p.until("!document.querySelector('dialog')")

	reader := open(t, server, "/console")
	reader.tolerate("status of 401")
	reader.read("wants a token")
	reader.signIn("the-token-of-a-reader")
	reader.pageOf("files", "Files")
	reader.read("The server has no files of tools.")
	if shown := reader.shown(); strings.Contains(shown, "Put a file") || strings.Contains(shown, "upload") {
		t.Errorf("a user who may only look is shown %s", shown)
	}
	off := open(t, serve(t, strings.Replace(administered(), "admin.upload = true\n", "", 1), add()), "/console")
	off.tolerate("status of 401")
	off.read("wants a token")
	off.signIn(boss)
	off.pageOf("files", "Files")
	off.read("has not set [admin] upload = true")
	off.check()
}
