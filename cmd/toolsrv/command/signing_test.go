package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// keyPair writes the files of a key.
func keyPair(t *testing.T) (private, public string) {
	t.Helper()
	return certtest.KeyFiles(t, t.TempDir(), certtest.NewKey(t))
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestSigning signs what was pushed, verifies it, and shows it.
func TestSigning(t *testing.T) {
	t.Parallel()
	s := ocitest.ServeReferrers(t)
	private, public := keyPair(t)
	_, others := keyPair(t)
	file, ref := shop(t), "oci://"+s.Host+"/acme/shop:1.2.0"
	succeeds := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := run(args...)
		if code != 0 {
			t.Fatalf("%q: got %d, %s", args, code, stderr)
		}
		return stdout, stderr
	}
	digest, _ := succeeds("push", file, ref)
	if code, stdout, stderr := run("verify", ref, "--key", public); code != 1 || stdout != "" || !strings.Contains(stderr, "it is not signed") {
		t.Errorf("verify: got %d, %q, %s", code, stdout, stderr)
	}
	if got, _ := succeeds("sign", ref, "--key", private); got != digest {
		t.Errorf("sign: got %q, want %q", got, digest)
	}
	if got, stderr := succeeds("verify", ref, "--key", public); got != digest || !strings.Contains(stderr, "is signed by the key "+public) {
		t.Errorf("verify: got %q, %s", got, stderr)
	}
	if code, stdout, stderr := run("verify", ref, "--key", others); code != 1 || stdout != "" || !strings.Contains(stderr, "it was not made with the key "+others) {
		t.Errorf("verify: got %d, %q, %s", code, stdout, stderr)
	}
	// No file is written unless the required signer has signed.
	folder := t.TempDir()
	pulled := filepath.Join(folder, "pulled.wasm")
	for _, c := range [][2]string{{others, "it was not made with the key " + others}, {private, "has no public key"}} {
		if code, stdout, stderr := run("pull", ref, "-o", pulled, "--key", c[0]); code != 1 || stdout != "" || !strings.Contains(stderr, c[1]) {
			t.Errorf("pull: got %d, %q, %s", code, stdout, stderr)
		}
	}
	if code, _, stderr := run("pull", ref, "-o", pulled, "--key", public, "--minimum", "2"); code != 1 || !strings.Contains(stderr, "it is version 1.2.3, and the minimum is 2") {
		t.Errorf("pull: got %d, %s", code, stderr)
	}
	if code, _, stderr := run("verify", ref, "--key", public, "--minimum", "1.2.4"); code != 1 || !strings.Contains(stderr, "it is version 1.2.3, and the minimum is 1.2.4") {
		t.Errorf("verify: got %d, %s", code, stderr)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 0 {
		t.Errorf("got the files %v, %v", files, err)
	}
	succeeds("verify", ref, "--key", public, "--minimum", "1.2")
	if got, _ := succeeds("pull", ref, "-o", pulled, "--key", public, "--minimum", "1.2.3"); got != digest || string(testkit.Read(t, pulled)) != string(testkit.Read(t, file)) {
		t.Errorf("pull: got %q", got)
	}
	// If several files are pushed, each is signed.
	other := testkit.Put(t, folder, "other.wasm", testkit.Read(t, file))
	succeeds("push", file, other, "oci://"+s.Host+"/acme/several:1", "--sign", "--key", private)
	for _, name := range []string{"shop", "other"} {
		succeeds("verify", "oci://"+s.Host+"/acme/several/"+name+":1", "--key", public)
		if code, _, _ := run("verify", "oci://"+s.Host+"/acme/several/"+name+":1", "--key", others); code != 1 {
			t.Errorf("%s: got %d with another key", name, code)
		}
	}
	succeeds("push", file, "oci://"+s.Host+"/acme/pushed:1", "--sign", "--key", private)
	succeeds("verify", "oci://"+s.Host+"/acme/pushed:1", "--key", public)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "signature not verified: nothing says who must have signed it"},
		{[]string{"--key", public}, "signature verified: by the key " + public},
		{[]string{"--key", others}, "signature not verified: it was not made with the key " + others},
	} {
		if got, _ := succeeds(append([]string{"inspect", ref}, c.args...)...); !strings.Contains(spaced(got), c.want) || !strings.Contains(spaced(got), "tool /shop/echo") || !strings.Contains(spaced(got), "artifact "+strings.TrimSpace(digest)) {
			t.Errorf("%q: got %s", c.args, got)
		}
	}
	got, _ := succeeds("inspect", ref, "--key", public, "--json")
	var report struct {
		Digest   string
		Artifact struct {
			Reference    string
			Attestations []struct {
				Type     string
				Verified bool
				By       struct{ Key string }
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &report); err != nil || report.Digest == "" || report.Artifact.Reference != strings.TrimSpace(digest) || len(report.Artifact.Attestations) != 1 ||
		!report.Artifact.Attestations[0].Verified || report.Artifact.Attestations[0].By.Key != public {
		t.Errorf("inspect: got %s", got)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"verify", ref}, 2, "name who must have signed it: --key, or --issuer"},
		{[]string{"verify", ref, "--issuer", "https://example.com", "--root", "root.json"}, 2, "an identity needs its subject"},
		{[]string{"verify", ref, "--issuer", "https://example.com", "--root", "root.json", "--subject", "*"}, 2, "anybody"},
		{[]string{"verify", ref, "--minimum", "1.2"}, 2, "name who must have signed it"},
		{[]string{"verify", ref, "--key", public, "--minimum", "new"}, 2, "is not a version"},
		{[]string{"pull", ref, "-o", pulled, "--minimum", "1.2"}, 2, "--minimum needs a signer"},
		{[]string{"pull", ref, "-o", pulled, "--key", ""}, 2, "it is empty"},
		{[]string{"pull", ref, "-o", pulled, "--issuer", ""}, 2, "it is empty"},
		{[]string{"pull", ref, "-o", pulled, "--subject", ""}, 2, "it is empty"},
		{[]string{"pull", ref, "-o", pulled, "--issuer", "https://example.com"}, 2, "an identity needs its subject"},
		{[]string{"verify", ref, "--key", private}, 1, "has no public key"},
		{[]string{"verify"}, 2, "REFERENCE is missing"},
		{[]string{"sign", ref}, 2, "--key is missing"},
		{[]string{"sign", ref, "--key", public}, 1, "not a private key"},
		{[]string{"sign", "oci://" + s.Host + "/acme/none:1", "--key", private}, 1, "the registry has nothing with this name"},
		{[]string{"push", file, ref, "--sign"}, 2, "--sign and --key belong together"},
		{[]string{"push", file, ref, "--key", private}, 2, "--sign and --key belong together"},
		{[]string{"inspect", file, "--key", public}, 2, "only artifacts in registries have signers"},
		{[]string{"inspect", ref, "--issuer", "x"}, 2, "an identity needs its subject"},
	} {
		if code, _, stderr := run(c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d, %s, want %d, %q", c.args, code, stderr, c.code, c.want)
		}
	}
}

// TestLockSigned checks that only signed artifacts are locked, since locked ones are served without verifying a signature.
func TestLockSigned(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	private, public := keyPair(t)
	folder := t.TempDir()
	toml := testkit.Put(t, folder, "toolsrv.toml", "[[source]]\noci = '"+s.Host+"/acme/moves'\ntag = '~1'\nminimum = '1.0.0'\n[[source.signer]]\nkey = '"+public+"'\n")
	lock := filepath.Join(folder, "toolsrv.lock")
	push := func(version string, more ...string) {
		m := strings.Replace(manifestOf("shop", "echo"), `"1.2.3"`, `"`+version+`"`, 1)
		module := testkit.Put(t, t.TempDir(), "moves.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), m))
		if code, _, stderr := run(append([]string{"push", module, "oci://" + s.Host + "/acme/moves:" + version}, more...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	fails := func(want string, args ...string) {
		t.Helper()
		before, _ := os.ReadFile(lock)
		if code, _, stderr := run(append(args, "--config", toml)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: got %d, %s", args, code, stderr)
		}
		if now, _ := os.ReadFile(lock); string(now) != string(before) {
			t.Errorf("%q has changed the lock", args)
		}
	}
	succeeds := func(args ...string) {
		t.Helper()
		if code, _, stderr := run(append(args, "--config", toml)...); code != 0 {
			t.Fatalf("%q: got %d, %s", args, code, stderr)
		}
	}
	push("1.0.0")
	fails("it is not signed", "lock")
	push("1.0.1", "--sign", "--key", private)
	succeeds("lock")
	push("1.0.2")
	fails("it is not signed", "update")
	push("1.0.3", "--sign", "--key", private)
	before, _ := os.ReadFile(lock)
	succeeds("update")
	if now, err := os.ReadFile(lock); err != nil || string(now) == string(before) {
		t.Errorf("got %s, %v", now, err)
	}
}
