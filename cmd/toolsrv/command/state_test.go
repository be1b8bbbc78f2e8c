package command_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestStateCommands backs a state up while its server runs, and while no server does, restores the copy elsewhere, and checks everything.
func TestStateCommands(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	if code, _, stderr := run("disable", "shop/echo", "--reason", "it rains", "--config", m.config); code != 0 {
		t.Fatal(stderr)
	}
	dir := t.TempDir()
	backup, again := filepath.Join(dir, "backup.db"), filepath.Join(dir, "again.db")
	other := testkit.Put(t, dir, "other.toml", "[state]\ndirectory = \"kept\"\n")
	implied := testkit.Put(t, dir, "implied.toml", "")
	damaged := testkit.Put(t, dir, "damaged.db", "not a state")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string // the text is on standard error, or else on standard output
	}{
		{"backup while a server runs", []string{"backup", backup, "--config", m.config}, 0, "is a copy of the state"},
		{"check it", []string{"check", backup}, 0, "audit"},
		{"check it, for programs", []string{"check", backup, "--json"}, 0, `"space": "switches"`},
		{"check a server's", []string{"check", "--config", m.config}, 0, "switches"},
		{"restore while a server runs", []string{"restore", backup, "--config", m.config}, 1, "in use by another process, such as a server: stop the server first"},
		{"nothing to back up", []string{"backup", again, "--config", other}, 1, "nothing has been kept yet"},
		{"restore a damaged backup", []string{"restore", damaged, "--config", other}, 1, "damaged.db is not a state that this version can read"},
		{"restore", []string{"restore", backup, "--config", other}, 0, "The state is restored from " + backup + ".\nTokens that have been revoked or rotated since the backup are valid again"},
		{"backup without a server", []string{"backup", again, "--config", other}, 0, "is a copy of the state"},
		{"backup over an older backup", []string{"backup", again, "--config", other}, 0, "is a copy of the state"},
		{"restore over an existing state", []string{"restore", again, "--config", other}, 0, "The previous state is now " + filepath.Join(dir, "kept", "state.db.")},
		{"restore to the default directory", []string{"restore", again, "--config", implied}, 0, "The state is restored from"},
		{"check a damaged backup", []string{"check", damaged}, 1, "is not a state that this version can read"},
		{"check a missing backup", []string{"check", filepath.Join(dir, "missing")}, 1, "no such file"},
		{"no file", []string{"backup"}, 2, "FILE is missing: name a copy of the state"},
		{"no command", nil, 2, "the command is missing"},
	} {
		code, stdout, stderr := run(append([]string{"state"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: got %d, %s%s; want %d, %q", c.name, code, stdout, stderr, c.code, c.says)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, ".toolsrv", "state.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, ".toolsrv-backup-*"))
	if err != nil || len(files) > 0 {
		t.Errorf("there is %q, %v", files, err)
	}
	// The audit of a restored state is unaltered: it has the entries of the backup, and after them one about the restore. Here the state is restored
	// twice, from a backup of itself.
	store, err := local.Open(filepath.Join(dir, "kept"), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log := audit.New(audit.Options{Space: func() state.Space { return store.Space(audit.Space) }})
	records, _, err := log.List(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, r := range records {
		actions = append(actions, r.Action)
	}
	if got := strings.Join(actions, " "); got != "disable state.backup state.restore state.restore" {
		t.Errorf("the audit has %s", got)
	}
	last := records[len(records)-1]
	if sum := sha256.Sum256(testkit.Read(t, again)); last.Target != again || !strings.HasPrefix(last.Who, "uid ") || !strings.Contains(string(last.After), fmt.Sprintf(`"digest":"%x"`, sum)) || !strings.Contains(string(last.After), `"modified":"2`) {
		t.Errorf("the last entry is %+v", last)
	}
	if ends, err := log.Verify(t.Context(), nil); err != nil || ends.Last != 4 {
		t.Errorf("got %+v, %v", ends, err)
	}
	if code, stdout, _ := run("audit", "verify", "--config", m.config); code != 0 || !strings.Contains(stdout, "Entries 1 to 3 are unaltered") { // a backup is a state, too
		t.Errorf("got %d, %s", code, stdout)
	}
}
