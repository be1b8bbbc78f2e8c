// Package browser_test uses the pages in Chromium as people do. Anything that a page does wrong fails the test that opened the page: a violation of its
// policy, an error or a warning in the console, an exception, a request that fails or leads elsewhere.
package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take to show what a test waits for.
const patience = 30 * time.Second

// chromium is the one browser of all tests. It ends with the process.
var chromium = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
		allocated, _ := chromedp.NewExecAllocator(context.Background(), options...)
		browser, _ := chromedp.NewContext(allocated)
		return browser, chromedp.Do(browser)
	}
	return nil, exec.ErrNotFound
})

func TestMain(m *testing.M) {
	code := m.Run()
	if browser, err := chromium(); err == nil {
		_ = chromedp.Cancel(browser)
	}
	os.Exit(code)
}

// A page is a window that shares nothing with those of other tests.
type page struct {
	t    *testing.T
	ctx  context.Context
	home *url.URL // of the server

	mu        sync.Mutex
	faults    []string
	tolerated []string
}

// open opens a page of a server, such as "/docs". The end of the test closes it, and fails if anything was wrong with it.
func open(t *testing.T, server, path string) *page {
	t.Helper()
	browser, err := chromium()
	if err == exec.ErrNotFound {
		t.Skip("there is no Chromium: make setup-browser installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
	home, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, home: home}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.listen))
	p.ctx = ctx
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, fault := range p.faults {
			t.Error("the page:", fault)
		}
	})
	if err := chromedp.Do(ctx, command(network.Enable, network.EnableParams{}), command(cdplog.Enable, cdp.Empty{})); err != nil {
		t.Fatal(err)
	}
	p.light(1280)
	p.visit(path)
	return p
}

// tolerate makes the test accept faults with this text, including earlier ones.
func (p *page) tolerate(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tolerated = append(p.tolerated, text)
	p.faults = slices.DeleteFunc(p.faults, func(fault string) bool { return strings.Contains(fault, text) })
}

// listen receives the events of the page.
func (p *page) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			p.fault("it says %s", strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if of := e.ExceptionDetails.Exception; of != nil {
			text += " " + of.Description
		}
		p.fault("it throws %s", text)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			p.fault("the browser says %s (%s)", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled {
			p.fault("a request fails: %s %s", e.ErrorText, e.BlockedReason)
		}
	case *network.EventRequestWillBeSent:
		to, err := url.Parse(e.Request.URL)
		if err != nil || to.Host != p.home.Host && to.Scheme != "data" && to.Scheme != "blob" {
			p.fault("it asks %s", e.Request.URL)
		}
	}
}

func (p *page) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	for _, known := range p.tolerated {
		if strings.Contains(text, known) {
			return
		}
	}
	p.faults = append(p.faults, text)
}

// command is an action that sends a command to the page.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// do does something in the page.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page shows:\n%s", err, p.shown())
	}
}

// shown returns the text of the page.
func (p *page) shown() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return fmt.Sprint(text, err)
}

// visit goes to a path of the server.
func (p *page) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.home.String() + path))
}

// see waits until something that matches a selector can be seen.
func (p *page) see(selector string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// read waits until the page shows a text.
func (p *page) read(text string) {
	p.t.Helper()
	p.until("document.body.innerText.includes(" + quoted(text) + ")")
}

// until waits until an expression is true, even if the window loads another page meanwhile.
func (p *page) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	script := "new Promise((yes) => { const look = () => { if (" + expression + ") yes(true); else setTimeout(look, 10); }; look(); })"
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatalf("this does not become true: %s: %v; the page shows:\n%s", expression, err, p.shown())
		}
	}
}

// quoted returns a string of JavaScript.
func quoted(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(literal)
}

// eval returns the value of an expression, or of its promise.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// click clicks the element that matches a selector, once it is visible and no longer moves: a click goes to a point, and something that appears above
// the element, such as the hour's plot, moves it away.
func (p *page) click(selector string) {
	p.t.Helper()
	p.see(selector)
	eval[bool](p, `new Promise((yes) => {
		let was, times = 0;
		const look = () => {
			const at = document.querySelector(`+quoted(selector)+`)?.getBoundingClientRect();
			times = at && was && at.x === was.x && at.y === was.y && at.height === was.height ? times + 1 : 0;
			was = at;
			if (times === 5) yes(true);
			else setTimeout(look, 10);
		};
		look();
	})`)
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// write replaces the text of the field that matches a selector.
func (p *page) write(selector, text string) {
	p.t.Helper()
	at := chromedp.CSS(selector)
	p.do(chromedp.WaitVisible(at), chromedp.Focus(at), chromedp.Evaluate[chromedp.Void]("document.activeElement.select()"), chromedp.SendKeys(at, text))
}

// press presses keys, such as kb.Tab, in the element that has the focus.
func (p *page) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// light and dark set the width of the window in pixels, and the colour scheme.
func (p *page) light(width int64) { p.t.Helper(); p.scheme("light", width) }
func (p *page) dark(width int64)  { p.t.Helper(); p.scheme("dark", width) }

func (p *page) scheme(colours string, width int64) {
	p.t.Helper()
	p.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}}))
	// The page gets the change within the next two frames.
	eval[bool](p, "new Promise((yes) => requestAnimationFrame(() => requestAnimationFrame(() => yes(true))))")
}

// check checks the page with axe, in light and dark, wide and narrow, except the elements that match the selectors. A narrow page must not scroll
// sideways.
func (p *page) check(without ...string) {
	p.t.Helper()
	script := axe(p.t)
	p.do(chromedp.Evaluate[chromedp.Void](script))
	left, err := json.Marshal(append([]string{}, without...))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, width := range []int64{1280, 360} {
		for _, set := range []func(int64){p.light, p.dark} {
			set(width)
			found := eval[[]string](p, `axe.run({exclude: `+string(left)+`.map((s) => [s])}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html + " " + n.failureSummary)))`)
			for _, violation := range found {
				p.t.Errorf("axe, %d wide: %s", width, violation)
			}
			if beside := eval[int](p, "document.documentElement.scrollWidth - window.innerWidth"); beside > 0 {
				p.t.Errorf("%d wide, %d pixels of the page are outside the window", width, beside)
			}
		}
	}
	p.light(1280)
}

// axe returns the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	name := os.Getenv("AXE")
	if name == "" {
		name = filepath.Join("..", "..", ".venv", "pages", "node_modules", "axe-core", "axe.min.js")
	}
	script, err := os.ReadFile(name)
	if err != nil {
		t.Skip("there is no axe-core: make test-browser gets it")
	}
	return string(script) + ";0"
}

// stolen fails the test if a page has run a text as a script.
func (p *page) stolen() {
	p.t.Helper()
	if eval[bool](p, `"stolen" in window || location.origin !== `+quoted(p.home.String())) {
		p.t.Errorf("the page has run a tool's text:\n%s", p.shown())
	}
	// Tools must not be able to add frames or links, either.
	if found := eval[[]string](p, `[...document.querySelectorAll("iframe, object, embed, base, form[action], meta[http-equiv], a[href^='javascript:' i], a[href^='data:' i], script:not([src])")].map((e) => e.outerHTML.slice(0, 200))`); len(found) > 0 {
		p.t.Errorf("the page has %q", found)
	}
}
