package image_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// patience is how long anything may take on a busy machine.
const patience = 4 * time.Minute

// unpack returns a folder with the file system of an image, with its owners, which only root can set.
func unpack(t *testing.T, img v1.Image) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // a container's root has this mode
		t.Fatal(err)
	}
	content := mutate.Extract(img)
	defer content.Close()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.Mkdir(path, 0o700)
		case tar.TypeReg:
			var f *os.File
			if f, err = os.Create(path); err == nil {
				_, err = io.Copy(f, r)
				err = errors.Join(err, f.Close())
			}
		default:
			err = fmt.Errorf("%s has the type %c", h.Name, h.Typeflag)
		}
		mode := h.FileInfo().Mode()
		if err := errors.Join(err, os.Chown(path, h.Uid, h.Gid), os.Chmod(path, mode&(os.ModePerm|os.ModeSticky))); err != nil {
			t.Fatal(err)
		}
	}
}

// seccompFile is Docker's default profile, as Debian's golang-github-containers-common has it.
const seccompFile = "/usr/share/containers/seccomp.json"

// seccomp returns the part of the default profile that applies to a process without capabilities on this processor, in runc's form.
func seccomp(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(seccompFile)
	if err != nil {
		t.Skipf("there is no default profile of seccomp: install golang-github-containers-common: %v", err)
	}
	type condition struct {
		Arches []string `json:"arches"`
		Caps   []string `json:"caps"`
	}
	var profile struct {
		DefaultAction   string `json:"defaultAction"`
		DefaultErrnoRet uint   `json:"defaultErrnoRet"`
		ArchMap         []struct {
			Architecture     string   `json:"architecture"`
			SubArchitectures []string `json:"subArchitectures"`
		} `json:"archMap"`
		Syscalls []struct {
			Names    []string         `json:"names"`
			Action   string           `json:"action"`
			Args     []map[string]any `json:"args"`
			ErrnoRet *uint            `json:"errnoRet"`
			Includes condition        `json:"includes"`
			Excludes condition        `json:"excludes"`
		} `json:"syscalls"`
	}
	if err := json.Unmarshal(text, &profile); err != nil {
		t.Fatal(err)
	}
	var rules []map[string]any
	for _, s := range profile.Syscalls {
		if len(s.Includes.Caps) > 0 || len(s.Includes.Arches) > 0 && !slices.Contains(s.Includes.Arches, runtime.GOARCH) || slices.Contains(s.Excludes.Arches, runtime.GOARCH) {
			continue
		}
		rule := map[string]any{"names": s.Names, "action": s.Action, "args": s.Args}
		if s.ErrnoRet != nil {
			rule["errnoRet"] = *s.ErrnoRet
		}
		rules = append(rules, rule)
	}
	i := 0
	if runtime.GOARCH == "arm64" {
		i = 1
	}
	return map[string]any{
		"defaultAction": profile.DefaultAction, "defaultErrnoRet": profile.DefaultErrnoRet, "syscalls": rules,
		"architectures": append(profile.ArchMap[i].SubArchitectures, profile.ArchMap[i].Architecture),
	}
}

// A setup is the configuration of a container, besides its image.
type setup struct {
	args   []string          // the command's arguments, in place of the image's
	env    map[string]string // more variables
	binds  map[string]string // read-only mounts, by their target
	writes map[string]string // writable mounts, by their target
	tmpfs  []string
	stdin  string
	own    bool     // its own network, with nothing else in it
	masked []string // further paths that are hidden from it
	errno  []string // further system calls that are refused
}

// A container is a running container. It is removed at the end of the test.
type container struct {
	t     *testing.T
	id    string
	state string
	cmd   *exec.Cmd
	url   string
	ended chan struct{}
	mu    sync.Mutex
	lines []string
	news  chan struct{} // receives a value when there are new lines
}

// runcIn returns a command of runc whose state is separate from that of other containers.
func runcIn(state string, arguments ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", state}, arguments...)...)
}

// start runs the image whose file system is at root: read-only, as its own user, without capabilities or ways to get any, and with the default
// profile of seccomp.
func start(t *testing.T, root string, c *v1.ConfigFile, s setup) *container {
	t.Helper()
	env := slices.Clone(c.Config.Env)
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		env = append(env, name+"="+s.env[name])
	}
	arguments := s.args
	if arguments == nil {
		arguments = c.Config.Cmd
	}
	var uid, gid int
	if _, err := fmt.Sscanf(c.Config.User, "%d:%d", &uid, &gid); err != nil {
		t.Fatalf("the image's user %q: %v", c.Config.User, err)
	}
	type m = map[string]any
	mounts := []m{
		{"destination": "/proc", "type": "proc", "source": "proc", "options": []string{"nosuid", "noexec", "nodev"}},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		{"destination": "/sys", "type": "none", "source": "/sys", "options": []string{"rbind", "nosuid", "noexec", "nodev", "ro"}},
	}
	for _, path := range s.tmpfs {
		mounts = append(mounts, m{"destination": path, "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "noexec", "mode=1777"}})
	}
	for _, target := range slices.Sorted(maps.Keys(s.binds)) {
		mounts = append(mounts, m{"destination": target, "type": "bind", "source": s.binds[target], "options": []string{"bind", "ro"}})
	}
	for _, target := range slices.Sorted(maps.Keys(s.writes)) {
		mounts = append(mounts, m{"destination": target, "type": "bind", "source": s.writes[target], "options": []string{"bind", "rw"}})
	}
	namespaces := []m{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}
	if s.own {
		namespaces = append(namespaces, m{"type": "network"})
	}
	profile := seccomp(t)
	if len(s.errno) > 0 {
		rules := []m{{"names": s.errno, "action": "SCMP_ACT_ERRNO", "errnoRet": 38}}
		for _, rule := range profile["syscalls"].([]m) {
			names := slices.DeleteFunc(slices.Clone(rule["names"].([]string)), func(n string) bool { return slices.Contains(s.errno, n) })
			if len(names) > 0 {
				rules = append(rules, m{"names": names, "action": rule["action"], "args": rule["args"], "errnoRet": rule["errnoRet"]})
			}
		}
		profile["syscalls"] = rules
	}
	none := []string{}
	spec := m{
		"ociVersion": "1.0.2",
		"process": m{
			"user": m{"uid": uid, "gid": gid}, "args": append(slices.Clone(c.Config.Entrypoint), arguments...), "env": env, "cwd": c.Config.WorkingDir,
			"capabilities":    m{"bounding": none, "effective": none, "permitted": none, "inheritable": none, "ambient": none},
			"noNewPrivileges": true,
		},
		"root":   m{"path": root, "readonly": true},
		"mounts": mounts,
		"linux": m{
			"namespaces": namespaces, "seccomp": profile,
			"resources": m{"devices": []m{{"allow": false, "access": "rwm"}}},
			"maskedPaths": append([]string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
				"/proc/sched_debug", "/proc/scsi", "/sys/firmware"}, s.masked...),
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	bundle := t.TempDir()
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(bundle, "state")
	k := &container{t: t, state: state, id: fmt.Sprintf("toolsrv-test-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(bundle))+filepath.Base(bundle)),
		ended: make(chan struct{}), news: make(chan struct{}, 1)}
	k.cmd = runcIn(state, "run", "--bundle", bundle, k.id)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = strings.NewReader(s.stdin), write, write
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	go func() {
		defer close(k.ended)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			k.mu.Lock()
			k.lines = append(k.lines, lines.Text())
			k.mu.Unlock()
			select {
			case k.news <- struct{}{}:
			default:
			}
		}
		_ = k.cmd.Wait()
		_ = read.Close()
	}()
	t.Cleanup(func() {
		_ = runcIn(state, "delete", "--force", k.id).Run()
		<-k.ended
		if t.Failed() {
			t.Logf("the container said:\n%s", k.said())
		}
	})
	return k
}

// pid returns the number of the container's first process.
func (k *container) pid() int {
	k.t.Helper()
	out, err := runcIn(k.state, "state", k.id).Output()
	var state struct {
		Pid int `json:"pid"`
	}
	if err := errors.Join(err, json.Unmarshal(out, &state)); err != nil || state.Pid == 0 {
		k.t.Fatalf("the container's state: %v: %s", err, out)
	}
	return state.Pid
}

func (k *container) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.lines, "\n")
}

// waitFor returns the first line of the log with a text.
func (k *container) waitFor(text string) string {
	k.t.Helper()
	for end := time.After(patience); ; {
		for line := range strings.Lines(k.said()) {
			if strings.Contains(line, text) {
				return line
			}
		}
		select {
		case <-k.news:
		case <-k.ended:
			k.t.Fatalf("the container has ended (%v) without %q", k.cmd.ProcessState, text)
		case <-end:
			k.t.Fatalf("no %q within %v", text, patience)
		}
	}
}

// ready waits until the server takes calls, and then stores its address. If tools are named, it waits until these are ready, too: on a busy machine,
// the server starts without waiting for all scripts.
func (k *container) ready(tools ...string) {
	k.t.Helper()
	var line struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal([]byte(k.waitFor(`"msg":"listening"`)), &line); err != nil {
		k.t.Fatal(err)
	}
	k.url = "http://" + line.Address
	k.waitFor(`"msg":"ready"`)
	for _, tool := range tools {
		k.waitFor(`"msg":"tool added","path":"` + tool + `"`)
	}
	if len(tools) > 0 {
		k.compiled()
	}
}

// compiled waits until all tools that are listed are compiled.
func (k *container) compiled() {
	k.t.Helper()
	k.waitFor("all tools are compiled")
}

// ask sends a request with a token, and returns the status and the body.
func (k *container) ask(method, path, token, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(k.t.Context(), method, k.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(response.Body)
	return response.StatusCode, strings.TrimSpace(out.String()), err
}

// call calls a tool, which must return a result.
func (k *container) call(path, body, want string) {
	k.t.Helper()
	if status, got, err := k.ask(http.MethodPost, path, token, body); err != nil || status != http.StatusOK || got != want {
		k.t.Errorf("%s answers %d %s (%v), want %s", path, status, got, err, want)
	}
}

// terminate sends SIGTERM, which runc passes on.
func (k *container) terminate() {
	k.t.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		k.t.Fatal(err)
	}
}

// stop sends SIGTERM and returns the exit code.
func (k *container) stop() int {
	k.t.Helper()
	k.terminate()
	return k.exit()
}

// exit waits until the container ends, and returns its exit code.
func (k *container) exit() int {
	k.t.Helper()
	select {
	case <-k.ended:
	case <-time.After(patience):
		k.t.Fatalf("it has not ended within %v", patience)
	}
	return k.cmd.ProcessState.ExitCode()
}
