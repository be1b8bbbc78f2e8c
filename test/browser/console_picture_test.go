package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures of the documentation anew")

// picture takes a picture of the present page for docs/pictures.
func (p *page) picture(name string) {
	p.t.Helper()
	p.do(script("document.activeElement.blur()"))
	content, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if len(content) < 1<<10 {
		p.t.Errorf("the picture %s has %d bytes", name, len(content))
	}
	if !*update {
		return
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "pictures", name), content, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// TestPictures takes the pictures of the documentation: go test -run TestPictures -update writes them.
func TestPictures(t *testing.T) {
	t.Parallel()
	server := serve(t, administered()+grants, append(granted(), large())...)
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.light(1000)
	p.tool("/math/divide")
	p.write(`[id="field-%5B%22a%22%5D"]`, "1")
	p.write(`[id="field-%5B%22b%22%5D"]`, "4")
	p.call()
	p.read("0.25")
	p.picture("console-tool.png")
	p.dark(1000)
	p.button("Disable")
	p.write("dialog input", "it rains")
	p.do(script("document.querySelector('dialog .danger').click()"))
	p.read("it rains")
	p.pageOf("audit", "Audit")
	p.read("1 entry")
	p.picture("console-audit.png")
	p.light(1240)
	p.pageOf("reach", "Reach")
	p.see(".reach svg")
	p.picture("console-reach.png")
}
