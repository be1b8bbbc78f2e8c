package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// The attacks on memory, in control groups: on the memory that loading files takes, and on the memory that loaded files keep.

const mib = 1 << 20

// A batch is a set of files, and the memory limit of the server that loads them.
type batch struct {
	memory int64
	files  int
	kind   string                      // the number of files, for the attack's line
	put    func(a *arena, i int) error // writes file number i, whose name is "big" and that number
}

func attackSources(ctx context.Context, a *arena) error {
	noise := func(size int) func(a *arena, i int) error {
		return func(a *arena, i int) error {
			return a.put(assemble.Tool{Namespace: namespace, Name: fmt.Sprint("big", i), Number: int32(i), Passive: size})
		}
	}
	var errs []error
	for _, b := range []batch{
		{128 * mib, 1, "63 MiB", noise(63 * mib)},
		{256 * mib, 1, "63 MiB", noise(63 * mib)},
		{768 * mib, 14, "63 MiB", noise(63 * mib)},
		{128 * mib, 8, "6 MiB", noise(6 * mib)},
		{256 * mib, 8, "12 MiB", noise(12 * mib)},
		{128 * mib, 200, "900 KiB", noise(900 << 10)},
	} {
		errs = append(errs, loadAll(ctx, a, b))
	}
	return errors.Join(errs...)
}

func attackManifests(ctx context.Context, a *arena) error {
	put := func(a *arena, i int) error {
		manifest := fmt.Sprintf(`{"abi":1,"namespace":%q,"tools":[{"name":"big%d","description":"Does it.","parameters":{"type":"object","properties":{"a":{"default":[%s1]}}}}]}`,
			namespace, i, strings.Repeat("1,", 490_000))
		return a.put(assemble.Tool{Name: fmt.Sprint("big", i), Number: int32(i), Manifest: []byte(manifest)})
	}
	return errors.Join(loadAll(ctx, a, batch{128 * mib, 1, "a manifest", put}), loadAll(ctx, a, batch{256 * mib, 6, "a manifest", put}))
}

func attackBundles(ctx context.Context, a *arena) error {
	const size = 15 * mib
	put := func(a *arena, i int) error {
		folder := filepath.Join(service.Tools(a.directory), namespace)
		noise := make([]byte, size/4*3)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(noise) // never fails, by its documentation
		text := strings.ReplaceAll(fmt.Sprintf(python.source, i), fmt.Sprint("t", i), fmt.Sprint("big", i))
		for rest := base64.StdEncoding.EncodeToString(noise); rest != ""; {
			n := min(len(rest), mib)
			text += "\n# " + rest[:n] + "\n"
			rest = rest[n:]
		}
		return errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, fmt.Sprint("big", i, ".py")), []byte(text), 0o600))
	}
	return loadAll(ctx, a, batch{256 * mib, 8, "15 MiB of Python", put})
}

// loadAll starts a server in a control group with the files of a batch and a small tool, which is called when all files are read. It then starts the
// server a second time with the cache of the first.
func loadAll(ctx context.Context, a *arena, b batch) error {
	all := a.directory
	defer func() { a.directory = all }()
	a.directory = filepath.Join(all, fmt.Sprintf("%d-%d-%s", b.memory, b.files, strings.ReplaceAll(b.kind, " ", "-")))
	if err := a.fill(1, assemble.Tool{}); err != nil {
		return err
	}
	for i := range b.files {
		if err := b.put(a, i); err != nil {
			return err
		}
	}
	a.tell("%d of %s in %d MiB:", b.files, b.kind, b.memory>>20)
	for range 2 {
		if err := loadOnce(ctx, a, b); err != nil {
			return fmt.Errorf("%d of %s in %d MiB: %w", b.files, b.kind, b.memory>>20, err)
		}
	}
	return nil
}

func loadOnce(ctx context.Context, a *arena, b batch) error {
	group, err := newCgroup(a.cgroup, b.memory)
	if err != nil {
		return fmt.Errorf("%w: no control group can be made: %w", errSkipped, err)
	}
	defer group.remove()
	var refused, unexplained atomic.Int64
	var first atomic.Pointer[string]
	o := service.Options{Cgroup: group.directory, Rest: withScripts, Each: func(line []byte) {
		if text := string(line); strings.Contains(text, "file refused") {
			if refused.Add(1); !strings.Contains(text, "server.memory") && !strings.Contains(text, "needed more memory than its limit") {
				unexplained.Add(1)
				first.CompareAndSwap(nil, &text)
			}
		}
	}}
	s, err := a.start(ctx, o)
	if err != nil {
		return errors.Join(err, died(s))
	}
	got := load{clients: 2, path: times(200, func(int) string { return path(0) })}.run(ctx, s)
	served := 0
	for i := range b.files {
		serves, err := a.settles(ctx, s, fmt.Sprintf("/%s/big%d", namespace, i))
		if err != nil {
			return err
		}
		if serves {
			served++
		}
	}
	more := load{clients: 2, path: times(200, func(int) string { return path(0) })}.run(ctx, s)
	a.tell("%d served and %d refused", served, refused.Load())
	err = errors.Join(got.judge(s), more.judge(s), tellGroup(a, group))
	if n := got.refused + more.refused; n > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls of a neighbour were refused", n))
	}
	if text := first.Load(); text != nil {
		err = errors.Join(err, fmt.Errorf("%d files were refused for another reason: %s", unexplained.Load(), *text))
	}
	return errors.Join(err, s.Stop(hang))
}
