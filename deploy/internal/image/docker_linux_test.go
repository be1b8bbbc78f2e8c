package image_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// runByDocker starts a Docker daemon, which loads the archive and runs the image as docs/operations.md says for an agent on the same machine. The
// daemon stores images without containerd, as Debian's does, and has no network.
func runByDocker(t *testing.T, archive string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for the daemon")
	}
	for _, name := range []string{"dockerd", "docker"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s: make setup-dist installs it", name)
		}
	}
	dir, err := os.MkdirTemp("", "docker") // paths in t.TempDir are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(dir, "socket")
	daemon := exec.Command("dockerd", "--host", socket, "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--pidfile", filepath.Join(dir, "pid"), "--bridge", "none", "--iptables=false", "--ip6tables=false", "--storage-driver", "vfs")
	var log bytes.Buffer
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = daemon.Wait() }()
	t.Cleanup(func() {
		_ = daemon.Process.Signal(os.Interrupt)
		<-ended
		if t.Failed() {
			t.Logf("the daemon said:\n%s", log.Bytes())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	docker := func(stdin string, arguments ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "docker", append([]string{"--host", socket}, arguments...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := docker("", "version")
		if err == nil {
			break
		}
		select {
		case <-ended:
			t.Skipf("no Docker daemon can run on this machine: %s", log.Bytes())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the daemon does not answer: %v: %s", err, out)
		}
	}
	out, err := docker("", "load", "--input", archive)
	name := regexp.MustCompile(`(?m)^Loaded image: (ghcr\.io/toolsrv/toolsrv:\S+-` + runtime.GOARCH + `)$`).FindStringSubmatch(out)
	if err != nil || name == nil {
		t.Fatalf("docker load: %v: %s", err, out)
	}
	tools := t.TempDir()
	if err := os.Chmod(tools, 0o755); err != nil { //nolint:gosec // the container's user reads it
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../../examples/hash/hash.wasm")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tools, "hash.wasm"), string(module))
	out, err = docker(listTools, "run", "-i", "--rm", "-v", tools+":/tools:ro", "-v", "toolsrv-cache:/var/cache/toolsrv", "--network", "none",
		"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", name[1], "mcp", "/tools")
	if err != nil || !strings.Contains(out, `"hash-digest"`) {
		t.Errorf("docker run: %v: %s", err, out)
	}
}
