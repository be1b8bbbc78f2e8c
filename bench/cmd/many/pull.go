package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/oci"
)

// pulled is the size of the module that is pulled, in bytes.
const pulled = 20 << 20

// pulling measures how fast a module is pulled from a registry on this machine into a file and verified, compared with curl writing the same bytes
// into a file.
func pulling(ctx context.Context, b *bench) (err error) {
	host, end, err := startRegistry(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	folder, err := os.MkdirTemp("", "many")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	none := filepath.Join(folder, "none.json")
	if err := os.WriteFile(none, []byte("{}"), 0o600); err != nil {
		return err
	}
	r, err := oci.Open(host, oci.Options{Credentials: none})
	if err != nil {
		return err
	}
	defer r.Close()
	module := make([]byte, pulled)
	rand.Read(module)
	ref := oci.Reference{Host: host, Repository: "acme/large", Tag: "1"}
	made, err := r.Push(ctx, ref, "large.wasm", module, nil)
	if err != nil {
		return err
	}
	layer := fmt.Sprintf("http://%s/v2/acme/large/blobs/%s", host, made.Digest)
	times, err := measure.Compare(b.Rounds, b.Span,
		measure.Side{Name: "pull", Do: func() error {
			to, err := os.Create(filepath.Join(folder, "pulled"))
			if err != nil {
				return err
			}
			_, err = r.Pull(ctx, ref.At(made.Manifest), to)
			return errors.Join(err, to.Close())
		}},
		measure.Side{Name: "curl", Do: func() error {
			return exec.CommandContext(ctx, "curl", "--silent", "--fail", "--output", filepath.Join(folder, "curled"), layer).Run()
		}})
	for _, name := range []string{"pulled", "curled"} {
		if err == nil {
			err = isModule(filepath.Join(folder, name), module)
		}
	}
	if err != nil {
		return err
	}
	const mib = pulled >> 20
	b.report.Explain("pull_mib_s: %.0f MiB/s, verified, into a file; curl writes the same bytes with %.0f MiB/s", mib/(times.Of(0)/1e9), mib/(times.Of(1)/1e9))
	b.report.Figure("pull_mib_s", times.Ratio(1, 0))
	return nil
}

// isModule returns an error unless a file contains the module that was pushed.
func isModule(file string, module []byte) error {
	content, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(content, module) {
		err = fmt.Errorf("%s is not what was pushed", filepath.Base(file))
	}
	return err
}

// startRegistry starts Debian's registry on a free port, in a folder of its own.
func startRegistry(ctx context.Context) (host string, end func() error, err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	host = free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "registry")
	if err != nil {
		return "", nil, err
	}
	settings := filepath.Join(folder, "registry.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", folder, host)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.Command("docker-registry", "serve", settings)
	if err := cmd.Start(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("start a registry, which make setup-registry installs: %w", err), os.RemoveAll(folder))
	}
	end = func() error {
		failed := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return errors.Join(failed, os.RemoveAll(folder))
	}
	for until := time.Now().Add(30 * time.Second); ; {
		answer, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			answer.Body.Close()
			return host, end, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return "", nil, errors.Join(fmt.Errorf("the registry does not answer: %w", err), end())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
