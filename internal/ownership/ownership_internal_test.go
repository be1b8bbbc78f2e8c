//go:build unix

package ownership

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck tries each way in which somebody else could replace our file by theirs.
// Proves: Files of others are not trusted
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		build func(t *testing.T, base string) (path string)
		user  func(u user) user // nil means the process's own
		want  string            // "": accepted
	}{
		{"private", func(t *testing.T, base string) string { return folder(t, 0o700, base, "a") }, nil, ""},
		{"readable by all", func(t *testing.T, base string) string { return folder(t, 0o755, base, "a") }, nil, ""},
		{"a file", func(t *testing.T, base string) string { return file(t, 0o644, base, "a") }, nil, ""},
		{"a file that everybody may write", func(t *testing.T, base string) string { return file(t, 0o646, base, "a") }, nil, "by every user"},
		{"a folder that everybody may write", func(t *testing.T, base string) string { return folder(t, 0o777, base, "a") }, nil, "by every user"},
		{"below a folder that everybody may write", func(t *testing.T, base string) string {
			return folder(t, 0o700, folder(t, 0o777, base, "open"), "a", "b")
		}, nil, "open can be changed by every user"},
		{"below a sticky folder that everybody may write", func(t *testing.T, base string) string {
			return folder(t, 0o700, folder(t, 0o777|os.ModeSticky, base, "tmp"), "a", "b")
		}, nil, ""},
		{"a sticky file", func(t *testing.T, base string) string { return file(t, 0o666|os.ModeSticky, base, "a") }, nil, "by every user"},
		{"by a group", func(t *testing.T, base string) string { return folder(t, 0o770, base, "a") },
			func(u user) user { return user{u.uid, u.gid + 1} }, group()},
		{"of another user", func(t *testing.T, base string) string { return file(t, 0o600, base, "a") },
			func(u user) user { return user{u.uid + 1, u.gid} }, foreign()},
		{"a relative link", func(t *testing.T, base string) string {
			folder(t, 0o755, base, "real")
			return link(t, "real", base, "a")
		}, nil, ""},
		{"a link into an open folder", func(t *testing.T, base string) string {
			return link(t, folder(t, 0o755, folder(t, 0o777, base, "open"), "real"), base, "a")
		}, nil, "open can be changed"},
		{"a link in an open folder to a good one", func(t *testing.T, base string) string {
			folder(t, 0o755, base, "real", "deep")
			link(t, "../real", folder(t, 0o777, base, "open"), "a")
			return filepath.Join(base, "open", "a", "deep")
		}, nil, "open can be changed"},
		{"through an open folder and up again", func(t *testing.T, base string) string {
			folder(t, 0o755, base, "real")
			folder(t, 0o777, base, "open", "b")
			return link(t, "open/b/../../real", base, "a")
		}, nil, "open can be changed"},
		{"a loop", func(t *testing.T, base string) string { return link(t, "a", base, "a") }, nil, "more than 40 symbolic links"},
		{"missing", func(t *testing.T, base string) string { return filepath.Join(base, "a") }, nil, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			path := c.build(t, base)
			u := self()
			if c.user != nil {
				u = c.user(u)
			}
			err := walk(path, u)
			if got := message(err); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got error %q, want one with %q", got, c.want)
			}
		})
	}
}

// foreign returns the error that another user gets for the test's own files. Root's files are accepted for everybody.
func foreign() string {
	if os.Geteuid() == 0 {
		return ""
	}
	return "belongs to user"
}

// group returns the error that a member of another group gets for these files.
func group() string {
	if os.Getegid() == 0 {
		return ""
	}
	return "can be changed by group"
}

// TestOthers gives a file to one owner after another.
func TestOthers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	path := file(t, 0o664, t.TempDir(), "a")
	for _, c := range []struct {
		name     string
		uid, gid int
		as       user
		want     string
	}{
		{"one's own", 1000, 1000, user{1000, 1000}, ""},
		{"root's", 0, 0, user{1000, 1000}, ""},
		{"another's", 1001, 1000, user{1000, 1000}, "belongs to user 1001"},
		{"another's, for root", 1001, 0, user{0, 0}, "belongs to user 1001"},
		{"the user's own file in a group with others", 1000, 50, user{1000, 1000}, "by group 50"},
		{"the user's own file in the user's own group, which has others", 1000, 50, user{1000, 50}, "by group 50"},
	} {
		if err := os.Chown(path, c.uid, c.gid); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := message(c.as.judge(path, info)); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got error %q, want one with %q", c.name, got, c.want)
		}
	}
}

// TestPublic calls the exported functions, which check for this process's user.
func TestPublic(t *testing.T) {
	t.Parallel()
	path := file(t, 0o666, t.TempDir(), "a")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Check": Check(path), "CheckFile": CheckFile(path, info)} {
		if !strings.Contains(message(err), path+" can be changed by every user") {
			t.Errorf("%s: got error %q", name, message(err))
		}
	}
	if err := Check(filepath.Dir(path)); err != nil {
		t.Errorf("Check of a private folder: %v", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// folder makes a folder with its parents, and gives all new folders this mode, whatever the umask is.
func folder(t *testing.T, mode os.FileMode, base string, names ...string) string {
	t.Helper()
	path := base
	for _, name := range names {
		path = filepath.Join(path, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		chmod(t, mode, path)
	}
	return path
}

func file(t *testing.T, mode os.FileMode, base, name string) string {
	t.Helper()
	path := filepath.Join(base, name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, mode, path)
	return path
}

func link(t *testing.T, target, base, name string) string {
	t.Helper()
	path := filepath.Join(base, name)
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func chmod(t *testing.T, mode os.FileMode, path string) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
