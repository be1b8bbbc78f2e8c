package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// loaded matches the addresses that a page loads, and imported those that a script imports.
var (
	loaded   = regexp.MustCompile(`(?:src|href)="([^"]+\.(?:js|css|svg))"`)
	imported = regexp.MustCompile(`(?m)^(?:import|export)\s+(?:[\w$*{},\s]+\sfrom\s+)?"(\.[^"]+)"`)
)

// page adds up the bytes that a browser loads to show the console, without the data that the console then requests.
func (b *bench) page(ctx context.Context) (err error) {
	s, err := b.serve(ctx, "", func(string) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	seen := map[string]bool{}
	total, files := 0, 0
	for paths := []string{"/console"}; len(paths) > 0; paths = paths[1:] {
		path := paths[0]
		if seen[path] {
			continue
		}
		seen[path] = true
		sent, text, err := get(ctx, s, path, "text/html,*/*;q=0.8")
		if err != nil {
			return err
		}
		total += sent
		files++
		links := loaded
		if strings.HasSuffix(path, ".js") {
			links = imported
		}
		base, err := url.Parse(path)
		if err != nil {
			return err
		}
		for _, m := range links.FindAllSubmatch(text, -1) {
			to, err := base.Parse(string(m[1]))
			if err != nil {
				return err
			}
			paths = append(paths, to.Path)
		}
	}
	b.report.Explain("page_kib: %d files", files)
	b.report.Figure("page_kib", float64(total)/1024)
	return nil
}

const (
	browsed = "TestConsoleMany" // has Chromium show 10,000 tools
	visits  = 3
)

// browse shows 10,000 tools in a browser, and measures how long it takes until they are listed, and how long it takes from a keystroke in the list's
// filter to the next frame, for 19 of 20 keystrokes.
func (b *bench) browse(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^"+browsed+"$", "-count", strconv.Itoa(visits), "-v", ".")
	cmd.Dir = b.pages
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v in %s: %w\n%s", cmd.Args, b.pages, err, out)
	}
	for _, name := range []string{"page_ready_ms", "page_key_ms"} {
		var got []float64
		for _, m := range regexp.MustCompile(`(?m)\b`+name+` ([0-9.]+)$`).FindAllSubmatch(out, -1) {
			ms, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return err
			}
			got = append(got, ms)
		}
		if len(got) != visits {
			return fmt.Errorf("%s tells %s %d times, not %d\n%s", browsed, name, len(got), visits, out)
		}
		b.report.Figure(name, measure.Median(got))
	}
	return nil
}
