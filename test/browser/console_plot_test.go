package browser_test

import (
	"slices"
	"testing"
)

// drawn is an expression for the colours of the pixels that a plot fills.
const drawn = `(() => {
	const c = document.querySelector(".plot canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	const all = new Set();
	for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) all.add([d[i], d[i + 1], d[i + 2]].join());
	return [...all];
})()`

// TestConsolePlots reads the pixels of a plot: it has the colours of its legend, in light and dark, also if the scheme changes while it is shown.
func TestConsolePlots(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add()), "/console")
	p.tolerate("status of 401")
	p.tolerate("willReadFrequently") // only this test reads from a canvas
	p.read("wants a token")
	p.signIn(boss)
	p.tool("/math/add")
	p.write(`[id="field-%5B%22a%22%5D"]`, "1")
	p.write(`[id="field-%5B%22b%22%5D"]`, "2")
	p.call()
	p.see(".plot canvas")
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme, 1280)
		for _, key := range []string{".key.first", ".key.second"} {
			p.until(`(` + drawn + `).includes(getComputedStyle(document.querySelector(".plot ` + key + `")).color.match(/\d+/g).join())`)
		}
		if found := eval[[]string](p, drawn); slices.Contains(found, "0,0,0") {
			t.Errorf("in the scheme %s, some pixels are black: %q", scheme, found)
		}
	}
}
