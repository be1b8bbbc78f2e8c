package linuxpackage

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

const (
	// callerVariable makes this program call a tool until its input ends. Its value is the token.
	callerVariable = "TOOLSRV_TEST_CALLER"
	// rootVariable names a tar of a Debian root with systemd, to use instead of making one.
	rootVariable = "TOOLSRV_TEST_DEBIAN"
	token        = "a-token-of-the-tests"
	// patience bounds every wait for an event.
	patience = 2 * time.Minute
)

// TestDebian installs each package in a booted Debian, and uses it as an operator does. Fedora's package is installed by rpm, and Alpine's service
// runs under OpenRC.
func TestDebian(t *testing.T) {
	t.Parallel()
	d := boot(t)
	for from, to := range map[string]string{packages(t): "/old", next(t): "/new"} {
		for _, kind := range []string{".deb", ".rpm", ".apk"} {
			d.put(filepath.Join(from, "toolsrv_linux_"+runtime.GOARCH+kind), to+kind, 0o644)
		}
	}
	for _, c := range []struct {
		name string
		test func(*debian)
	}{{"deb", (*debian).deb}, {"rpm", (*debian).rpm}, {"apk", (*debian).apk}} {
		if !t.Run(c.name, func(t *testing.T) {
			part := *d
			part.t = t
			c.test(&part)
		}) {
			return // what the failed package left behind would disturb the next one
		}
	}
}

// deb sets a token, serves a tool, reloads, upgrades under load, lets systemd listen, removes and purges.
func (d *debian) deb() {
	d.run("dpkg --install /old.deb")
	d.want("is ready once it is installed", "active", "systemctl is-active toolsrv")
	d.want("starts with the machine", "enabled", "systemctl is-enabled toolsrv")
	d.want("leaves the unit of its socket disabled", "disabled", "systemctl is-enabled toolsrv.socket || true")
	d.want("runs as a user of its own", "toolsrv", "stat --format %U /proc/$(systemctl show --property MainPID --value toolsrv)")
	d.want("nobody else can read its state", "700 toolsrv", "stat --format '%a %U' /var/lib/toolsrv/state")
	d.want("can't write to the folder of its tools", "755 root", "stat --format '%a %U' /var/lib/toolsrv/tools")
	d.want("has units without faults", "", "systemd-analyze --man=no verify toolsrv.service toolsrv.socket 2>&1")
	d.want("lets nobody in without a token", "401", status)

	d.setUp("credentials")
	d.run("systemctl restart toolsrv")
	d.want("serves a tool", "200", status)
	d.want("compiles code within the sandbox of the unit", "", "journalctl --unit toolsrv --output cat | grep -E '\"level\":\"ERROR\"|file refused|overloaded' || true")

	d.run("cp /etc/toolsrv/toolsrv.toml /root/before; echo nonsense >>/etc/toolsrv/toolsrv.toml; systemctl reload toolsrv")
	d.eventually("says why a configuration was not loaded", "the configuration stays as it was: ", "systemctl show --property StatusText --value toolsrv")
	d.run("cp /root/before /etc/toolsrv/toolsrv.toml; systemctl reload toolsrv")
	d.eventually("has loaded the next configuration", "ready", "systemctl show --property StatusText --value toolsrv")

	d.upgrade("dpkg --install /new.deb")
	d.want("was not restarted", "0", "systemctl show --property NRestarts --value toolsrv")

	// The watchdog restarts a server that hangs.
	d.run("mkdir /etc/systemd/system/toolsrv.service.d; printf '[Service]\\nWatchdogSec=3\\nTimeoutAbortSec=1\\n' >/etc/systemd/system/toolsrv.service.d/watchdog.conf; systemctl daemon-reload; systemctl restart toolsrv")
	d.run("systemctl kill --signal=STOP --kill-who=main toolsrv")
	d.eventually("was started again", "1", "systemctl show --property NRestarts --value toolsrv")
	d.eventually("serves again", "200", status)
	d.want("was ended by the watchdog", "1", "journalctl --unit toolsrv --output cat | grep --count 'Watchdog timeout'")
	d.run("rm -r /etc/systemd/system/toolsrv.service.d; systemctl daemon-reload")

	d.run("systemctl stop toolsrv; systemctl start toolsrv.socket")
	d.want("does not run before the first connection", "inactive", "systemctl is-active toolsrv || true")
	d.want("is started by the first connection", "200", status)
	d.run("systemctl kill --signal=USR2 --kill-who=main toolsrv")
	d.eventually("is restarting", "reloading", "systemctl is-active toolsrv")
	d.want("keeps systemd's socket during a restart in place", "200", status)

	d.run("dpkg --remove toolsrv")
	d.want("has stopped", "inactive inactive", "echo $(systemctl is-active toolsrv toolsrv.socket)")
	for _, kept := range []string{"/etc/toolsrv/toolsrv.toml", "/etc/toolsrv/tokens", "/var/lib/toolsrv/state/state.db", "/var/lib/toolsrv/tools/fuzzy.wasm"} {
		d.run("test -e " + kept)
	}
	d.run("dpkg --install /new.deb")
	d.eventually("serves as before once it is installed again", "200", status)
	d.run("systemctl disable --now toolsrv; dpkg --install /new.deb")
	d.want("stays stopped and disabled when it is installed again", "inactive disabled", "echo $(systemctl is-active toolsrv) $(systemctl is-enabled toolsrv)")
	d.run("dpkg --purge toolsrv")
	const left = "find / -xdev -name '*toolsrv*' -not -path '/proc/*' -not -path '/tmp/*' | sort | tr '\\n' ' '"
	d.want("leaves what the operator has made", "/var/lib/toolsrv", left)
	d.want("leaves the operator's tools", "fuzzy.wasm", "ls /var/lib/toolsrv/tools")

	d.run("dpkg --install /new.deb; rm /var/lib/toolsrv/tools/fuzzy.wasm; dpkg --purge toolsrv")
	d.want("leaves nothing", "", left)
}

// status prints the status of a call. The Debian has bash, and no curl.
const status = `exec 3<>/dev/tcp/127.0.0.1/8000
printf 'POST /fuzzy/distance HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ` + token + `\r\nContent-Type: application/json\r\n' >&3
printf 'Content-Length: 17\r\nConnection: close\r\n\r\n{"a":"x","b":"y"}' >&3
read -r _ code _ <&3; echo $code`

// setUp does what an operator does next: it adds a tool and a token, and uncomments the line of the configuration that begins with tokens_file and
// contains the text line.
func (d *debian) setUp(line string) {
	d.t.Helper()
	d.put("../../../examples/plain-c/plain-c.wasm", "/var/lib/toolsrv/tools/fuzzy.wasm", 0o644)
	d.run("umask 077; echo " + token + " >/etc/toolsrv/tokens; sed -i 's|^# \\(tokens_file.*" + line + "\\)|\\1|' /etc/toolsrv/toolsrv.toml")
}

// upgrade runs a command that installs the second build while clients call the first one.
func (d *debian) upgrade(install string) {
	d.t.Helper()
	main := d.run("pgrep --exact --oldest toolsrv")
	before := d.run("sha256sum </proc/" + main + "/exe")
	clients := d.call()
	d.run(install)
	d.eventually("runs the new program in the same process", d.run("sha256sum </usr/bin/toolsrv"), "sha256sum </proc/"+main+"/exe")
	d.eventually("answers", "200", status)
	answered := clients()
	d.t.Logf("%d calls while the package was upgraded", answered)
	if answered < 100 {
		d.t.Errorf("only %d calls were answered, want enough to lose one", answered)
	}
	if after := d.run("sha256sum </proc/" + main + "/exe"); after == before {
		d.t.Error("both builds are the same program")
	}
}

// A debian is a booted root file system.
type debian struct {
	t      *testing.T
	root   string
	leader string // its first process
}

// boot makes a Debian and boots it.
func boot(t *testing.T) *debian {
	t.Helper()
	if testing.Short() {
		t.Skip("it makes a Debian")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can boot a Debian")
	}
	for _, name := range []string{"mmdebstrap", "systemd-nspawn", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s: make setup-dist installs it", name)
		}
	}
	root := filepath.Join(t.TempDir(), "root")
	if made := os.Getenv(rootVariable); made != "" {
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		output(t, "tar", "--extract", "--file", made, "--directory", root)
	} else {
		output(t, "mmdebstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,procps,rpm,openrc,busybox,adduser", suite(t), root)
	}
	d := &debian{t: t, root: root}
	cmd := exec.Command("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--directory", root, "--private-network", "--boot")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		if d.leader != "" {
			_ = exec.Command("nsenter", "--target", d.leader, "--all", "systemctl", "poweroff").Run()
		}
		select {
		case <-ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("the Debian said:\n%s", log.Bytes())
		}
	})
	deadline := time.After(patience)
	for state := ""; state != "running" && state != "degraded"; {
		select {
		case <-ended:
			t.Skipf("no Debian can boot on this machine: %s", log.Bytes())
		case <-deadline:
			t.Fatalf("the Debian has not booted after %s, it is %s", patience, state)
		case <-time.After(100 * time.Millisecond):
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if d.leader, _, _ = strings.Cut(strings.TrimSpace(string(children)), " "); d.leader != "" {
			out, _ := exec.Command("nsenter", "--target", d.leader, "--all", "systemctl", "is-system-running").Output()
			state = strings.TrimSpace(string(out))
		}
	}
	return d
}

// suite returns the name of this machine's Debian release, whose packages can be downloaded here.
func suite(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/etc/os-release")
	name := regexp.MustCompile(`(?m)^VERSION_CODENAME=(.+)$`).FindSubmatch(text)
	if err != nil || name == nil || !bytes.Contains(text, []byte("ID=debian\n")) {
		t.Skip("this machine is not a Debian")
	}
	return string(name[1])
}

// next makes packages of a second build, from an empty commit, and returns their folder.
func next(t *testing.T) string {
	t.Helper()
	root, out := filepath.Join(t.TempDir(), "checkout"), t.TempDir()
	output(t, "git", "clone", "--quiet", "../../..", root)
	output(t, "env", "GIT_COMMITTER_DATE=2099-01-01T00:00:00Z", "git", "-C", root, "-c", "user.name=a", "-c", "user.email=b@c.example",
		"commit", "--quiet", "--allow-empty", "--message", "test: be newer")
	if err := makeOf(t.Context(), root, out, release.System{OS: "linux", Arch: runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}
	return out
}

// put copies a file into the Debian.
func (d *debian) put(file, to string, mode os.FileMode) {
	d.t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.root, to), content, mode)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// try runs a script in the Debian, and returns its output without surrounding spaces.
func (d *debian) try(script string) (string, error) {
	cmd := exec.CommandContext(d.t.Context(), "nsenter", "--target", d.leader, "--all", "bash", "-euc", script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), err
}

// run runs a script like try, but the script must succeed.
func (d *debian) run(script string) string {
	d.t.Helper()
	out, err := d.try(script)
	if err != nil {
		journal, _ := d.try("journalctl --unit toolsrv --no-pager --lines 50")
		d.t.Fatalf("%s: %v\n%s", script, err, journal)
	}
	return out
}

// want compares the output of a script.
func (d *debian) want(what, want, script string) {
	d.t.Helper()
	if got := d.run(script); got != strings.TrimSpace(want) {
		d.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// eventually waits until a script's output begins with this prefix.
func (d *debian) eventually(what, want, script string) {
	d.t.Helper()
	var got string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if got, _ = d.try(script); strings.HasPrefix(got, want) {
			return
		}
	}
	d.t.Fatalf("%s: still %q after %s, want %q", what, got, patience, want)
}

// call starts clients in the Debian's network, which call a tool. The returned function ends them and returns how many calls were answered. A lost
// call fails the test.
func (d *debian) call() (end func() int) {
	d.t.Helper()
	program, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.CommandContext(d.t.Context(), "nsenter", "--target", d.leader, "--net", program)
	cmd.Env = append(os.Environ(), callerVariable+"="+token)
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil { // they have begun
		d.t.Fatal(err)
	}
	return func() int {
		d.t.Helper()
		_ = in.Close()
		text, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			d.t.Errorf("calls were lost: %s", text)
		}
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
}

// call runs the clients, and returns the exit code.
func call(token string) int {
	var answered atomic.Int64
	var lost sync.Map
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for i := range 4 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}, Timeout: patience}
		clients.Go(func() {
			for ctx.Err() == nil {
				// A reader that can't be read twice, so that the client does not try again by itself.
				q, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:8000/fuzzy/distance", io.MultiReader(strings.NewReader(`{"a":"x","b":"y"}`)))
				q.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
				a, err := client.Do(q)
				if err != nil {
					lost.Store(err.Error(), nil)
					continue
				}
				_, err = io.Copy(io.Discard, a.Body)
				_ = a.Body.Close()
				if err != nil || a.StatusCode != http.StatusOK {
					lost.Store(fmt.Sprint(a.Status, err), nil)
				}
				if answered.Add(1) == 1 {
					fmt.Println("begun")
				}
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	clients.Wait()
	code := 0
	lost.Range(func(what, _ any) bool { fmt.Println(what); code = 1; return true })
	if code == 0 {
		fmt.Println(answered.Load())
	}
	return code
}
