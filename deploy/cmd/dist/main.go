// Command dist makes everything that a release consists of, from a checkout:
//
//	dist [-root CHECKOUT] -out FOLDER [-only archives,packages]
//
// The same commit gives the same files, bit by bit. `make dist` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/archive"
	"github.com/toolsrv/toolsrv/deploy/internal/attest"
	"github.com/toolsrv/toolsrv/deploy/internal/chart"
	"github.com/toolsrv/toolsrv/deploy/internal/compose"
	"github.com/toolsrv/toolsrv/deploy/internal/image"
	"github.com/toolsrv/toolsrv/deploy/internal/installer"
	"github.com/toolsrv/toolsrv/deploy/internal/linuxpackage"
	"github.com/toolsrv/toolsrv/deploy/internal/mcpb"
	"github.com/toolsrv/toolsrv/deploy/internal/monitoring"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
	"github.com/toolsrv/toolsrv/deploy/internal/sbom"
	"github.com/toolsrv/toolsrv/deploy/internal/sdks"
)

// A part is one kind of file that a release has.
type part struct {
	name string
	make func(ctx context.Context, r *release.Release) error
}

// parts returns all of them. Later ones may read what earlier ones have written.
func parts() []part {
	return []part{
		{"archives", archive.Make},
		{"packages", linuxpackage.Make},
		{"installers", installer.Make},
		{"image", image.Make},
		{"chart", chart.Make},
		{"compose", compose.Make},
		{"monitoring", monitoring.Make},
		{"sdks", sdks.Make},
		{"mcpb", mcpb.Make},
		{"sbom", sbom.Make},
		{"attest", attest.Make}, // attests all files that the parts before it have written
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, log io.Writer) (err error) {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	root := flags.String("root", ".", "the checkout")
	out := flags.String("out", "", "the `folder` to write to: empty, or not there yet")
	only := flags.String("only", "", "make only these `parts`, separated by commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("usage: dist [-root CHECKOUT] -out FOLDER [-only PARTS]")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	step := func(name string, do func() error) error {
		start := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(log, "%-10s %5.1f s\n", name, time.Since(start).Seconds())
		return nil
	}
	var r *release.Release
	if err := step("programs", func() error { r, err = release.Open(ctx, *root, *out); return err }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, p := range chosen {
		if err := step(p.name, func() error { return p.make(ctx, r) }); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the parts with these names, in their order, or all.
func choose(names string) ([]part, error) {
	if names == "" {
		return parts(), nil
	}
	wanted := strings.Split(names, ",")
	var chosen []part
	for _, p := range parts() {
		if i := slices.Index(wanted, p.name); i >= 0 {
			chosen, wanted = append(chosen, p), slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		var known []string
		for _, p := range parts() {
			known = append(known, p.name)
		}
		return nil, fmt.Errorf("-only: a release has no %q: it has %s", wanted[0], strings.Join(known, ", "))
	}
	return chosen, nil
}
