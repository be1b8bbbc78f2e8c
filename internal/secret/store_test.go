package secret_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A service is a store with a grant that is in every configuration.
type service struct {
	*secret.View
	store  *secret.Store
	values *secret.Values
}

// serve returns a service with secrets.
func serve(t *testing.T, v *secret.Values) *service {
	t.Helper()
	s := secret.NewStore(nil)
	if warning := s.Add(v); warning != "" {
		t.Fatal(warning)
	}
	return &service{secret.NewView(s, v), s, v}
}

// replace publishes the next configuration, with other secrets.
func (s *service) replace(t *testing.T, v *secret.Values) {
	t.Helper()
	if warning := s.store.Add(v); warning != "" {
		t.Error(warning)
	}
	s.values = v
	s.Extend(v)
}

// read returns a service with the secrets of sources, and the warnings.
func read(t *testing.T, s secret.Sources) (*service, []string) {
	t.Helper()
	v, warnings, err := secret.Read(s)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, v), warnings
}

// private makes a folder that others can't read.
func private(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantSecret(t *testing.T, s *service, name, want string) {
	t.Helper()
	got, err := s.Secret(name)
	if err != nil || got != want {
		t.Errorf("the secret %s is %q, %v, want %q", name, got, err, want)
	}
}

// TestRead reads secrets of each source.
func TestRead(t *testing.T) {
	t.Setenv("SECRET_TEST_VARIABLE", "from a variable\n")
	dir, other := private(t), private(t)
	testkit.Put(t, dir, "line", "one line only\n")
	testkit.Put(t, dir, "windows", "one line only\r\n")
	testkit.Put(t, dir, "lines", "first line\nsecond line\n\n")
	testkit.Put(t, dir, "bytes", "\x00\xff bytes of any kind \n\r")
	testkit.Put(t, dir, "Name-with.all_7", "a long name")
	testkit.Put(t, dir, "twice", "what the directory has")
	testkit.Put(t, dir, ".hidden", "not to be seen")
	testkit.Put(t, dir, "folder/inside", "not to be seen")
	s, warnings := read(t, secret.Sources{
		Directory:   dir,
		Files:       map[string]string{"file": testkit.Put(t, other, "x", "from a file"), "twice": testkit.Put(t, other, "y", "what is named")},
		Environment: map[string]string{"variable": "SECRET_TEST_VARIABLE", "twice": "SECRET_TEST_VARIABLE"},
	})
	for name, want := range map[string]string{
		"line": "one line only", "windows": "one line only", "lines": "first line\nsecond line\n", "bytes": "\x00\xff bytes of any kind \n\r",
		"Name-with.all_7": "a long name", "twice": "what is named", "file": "from a file", "variable": "from a variable",
	} {
		wantSecret(t, s, name, want)
	}
	if got := strings.Join(s.values.Names(), " "); got != "Name-with.all_7 bytes file line lines twice variable windows" {
		t.Errorf("the names are %s", got)
	}
	if _, err := s.Secret("folder"); err == nil || !strings.Contains(err.Error(), `no secret "folder"`) || s.values.Has("folder") {
		t.Errorf("a folder is a secret: %v", err)
	}
	if want := "secrets of fewer than 16 bytes can be guessed by callers of the tools that use them: Name-with.all_7, file, line, 3 more"; strings.Join(warnings, "|") != want {
		t.Errorf("got the warnings %q, want %q", warnings, want)
	}
}

// TestReadRefuses tries values that can't be secrets, named in the configuration and in the directory. No message shows content.
// Proves: Secrets stay secret
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const content = "hunter2"
	other := private(t)
	files := func(path string) secret.Sources {
		return secret.Sources{Files: map[string]string{"x": path}}
	}
	for _, c := range []struct {
		name    string
		sources secret.Sources
		want    string
	}{
		{"no directory", secret.Sources{Directory: filepath.Join(other, "none")}, "no such file"},
		{"no file", files(filepath.Join(other, "none")), "no such file"},
		{"a folder", files(other), "not a regular file"},
		{"no variable", secret.Sources{Environment: map[string]string{"x": "SECRET_TEST_NONE"}}, "no such environment variable"},
		{"an empty file", files(testkit.Put(t, other, "empty", "\n")), "it is empty"},
		{"a short secret", files(testkit.Put(t, other, "short", content)), "fewer than 8"},
		{"a short secret with many line breaks and backslashes", files(testkit.Put(t, other, "blank", content+"\n\n\n\n\\\\")), "fewer than 8"},
		{"a secret that is too large", files(testkit.Put(t, other, "large", strings.Repeat(content, 10_000))), "larger than 64 KiB"},
		{"a bad name", secret.Sources{Files: map[string]string{"a/b": testkit.Put(t, other, "good", content+content)}}, "not a valid name"},
		{"too many bytes in total", secret.Sources{Files: many(t, other, 17, strings.Repeat("ab"+content, 7000))}, "more than 1 MiB"},
		{"too many", secret.Sources{Files: many(t, other, 1001, content+content)}, "more than 1000 secrets"},
		{"too many files", secret.Sources{Directory: folderOf(t, 1001)}, "more than 1000 entries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, warnings, err := secret.Read(c.sources)
			if err == nil || !strings.Contains(err.Error(), c.want) || v != nil {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if shown := fmt.Sprint(v, warnings, err); strings.Contains(shown, content) {
				t.Errorf("content is shown: %s", shown)
			}
		})
	}
}

// many returns paths by names, all of the same file.
func many(t *testing.T, dir string, n int, content string) map[string]string {
	t.Helper()
	path := testkit.Put(t, dir, fmt.Sprint("many", n), content)
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprint("name", i)] = path
	}
	return files
}

func folderOf(t *testing.T, n int) string {
	t.Helper()
	dir := private(t)
	for i := range n {
		testkit.Put(t, dir, fmt.Sprint("name", i), "something secret")
	}
	return dir
}

// TestReadLeavesOut has a directory with files that can't be secrets: there are warnings, and the other files are read.
func TestReadLeavesOut(t *testing.T) {
	t.Parallel()
	dir := private(t)
	testkit.Put(t, dir, "good", "a good secret, of 16 bytes")
	testkit.Put(t, dir, "short", "hunter2")
	testkit.Put(t, dir, "large", strings.Repeat("hunter2", 10_000))
	testkit.Put(t, dir, "b d", "a bad name")
	want := []string{"b d is not used as a secret", "large is not used", "short is not used"}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "dangling")); err != nil {
			t.Fatal(err)
		}
		want = slices.Insert(want, 1, "dangling is not used")
	}
	s, warnings := read(t, secret.Sources{Directory: dir})
	if got := strings.Join(s.values.Names(), " "); got != "good" {
		t.Errorf("the names are %s", got)
	}
	for i, part := range want {
		if len(warnings) != len(want) || !strings.Contains(warnings[i], part) || strings.Contains(warnings[i], "hunter2") {
			t.Fatalf("got the warnings %q, want %q", warnings, want)
		}
	}
}

// TestReadKubernetes mounts secrets as Kubernetes does, and replaces them.
// Proves: Secrets stay secret
func TestReadKubernetes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a right there")
	}
	dir := private(t)
	mount := func(version, token string) {
		testkit.Put(t, dir, version+"/token", token)
		next := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(version, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..2026_01_01", "the first token\n")
	if err := os.Symlink(filepath.Join("..data", "token"), filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	s, _ := read(t, secret.Sources{Directory: dir})
	wantSecret(t, s, "token", "the first token")
	mount("..2026_01_02", "the second token")
	v, _, err := secret.Read(secret.Sources{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	wantSecret(t, s, "token", "the first token")
	s.replace(t, v)
	wantSecret(t, s, "token", "the second token")
	if len(s.values.Names()) != 1 {
		t.Errorf("the names are %q", s.values.Names())
	}
}

// TestOpenFiles has files that every user can read, and some that only the owner can reach.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	make := func(dirMode, fileMode os.FileMode, names ...string) string {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("secret-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))+names[0])
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		for _, name := range names {
			path := testkit.Put(t, dir, name, "something secret")
			if err := os.Chmod(path, fileMode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, dirMode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if info, err := os.Stat(os.TempDir()); err != nil || info.Mode().Perm()&0o001 == 0 {
		t.Skip("others can't reach the folder for temporary files")
	}
	for _, c := range []struct {
		name, dir, want string
	}{
		{"private", make(0o755, 0o600, "a1", "b"), ""},
		{"as systemd has them", make(0o500, 0o400, "a2", "b"), ""},
		{"open, in a private folder", make(0o700, 0o644, "a3", "b"), ""},
		{"open", make(0o755, 0o644, "a4", "b"), "b: chmod o-r"},
		{"many", make(0o755, 0o644, "a5", "b", "c", "d", "e"), "a5 and 4 more secrets"},
	} {
		if _, warnings := read(t, secret.Sources{Directory: c.dir}); len(warnings) > 1 || !strings.Contains(strings.Join(warnings, ""), c.want) || c.want == "" && len(warnings) > 0 {
			t.Errorf("%s: got the warnings %q, want %q", c.name, warnings, c.want)
		}
	}
}

// TestRotation replaces secrets: former values are no longer given out, but still found.
// Proves: Secrets stay secret
func TestRotation(t *testing.T) {
	t.Parallel()
	values := func(content ...string) *secret.Values {
		files := map[string]string{}
		dir := private(t)
		for i, c := range content {
			if c != "" {
				name := string(rune('a' + i))
				files[name] = testkit.Put(t, dir, name, c)
			}
		}
		v, _, err := secret.Read(secret.Sources{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	s := serve(t, values("alpha-1111-first", "the-value-of-b"))
	if got, want := s.Redactor(secret.NamesOf("a")).String("alpha-1111-first, the-value-of-b"), "[secret], the-value-of-b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if s.Redactor(secret.NamesOf("a", "b")) != s.Redactor(secret.NamesOf("b", "a", "a")) {
		t.Error("the same names have two redactors")
	}
	s.replace(t, values("omega-2222-later", "the-value-of-b"))
	wantSecret(t, s, "a", "omega-2222-later")
	const all = "alpha-1111-first, omega-2222-later, the-value-of-b"
	if got, want := s.Redactor(secret.NamesOf("a")).String(all), "[secret], [secret], the-value-of-b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.replace(t, values("", "the-value-of-b"))
	if s.values.Has("a") {
		t.Error("a secret that is gone is given out")
	}
	if got, want := s.store.Everything().String(all), "[secret], [secret], [secret]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{s.Redactor(secret.NamesOf()).String(all), s.Redactor(secret.NamesOf("none")).String(all), secret.NewStore(nil).Everything().String(all)} {
		if text != all {
			t.Errorf("redacted without a secret: %q", text)
		}
	}
}

// TestReplaceWhileUsed lets goroutines use secrets while others replace all of them: the values that each sees belong together.
// Proves: Secrets stay secret
func TestReplaceWhileUsed(t *testing.T) {
	t.Parallel()
	dir := private(t)
	version := func(i int) *secret.Values {
		v, _, err := secret.Read(secret.Sources{Files: map[string]string{"a": filepath.Join(dir, fmt.Sprint(i%2+1))}})
		if err != nil {
			t.Error(err)
		}
		return v
	}
	for _, name := range []string{"1", "2"} {
		testkit.Put(t, dir, name, name+"-------")
	}
	s := serve(t, version(0))
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 200 {
				v := version(i)
				if warning := s.store.Add(v); warning != "" {
					t.Error(warning)
				}
				s.Extend(v)
				if got, err := s.Secret("a"); err != nil || got != "1-------" && got != "2-------" {
					t.Errorf("got %q, %v", got, err)
				}
				if got, err := s.Secret("a"); err != nil || s.Redactor(secret.NamesOf("a")).String(got) == got {
					t.Errorf("%q is not found", got)
				}
			}
		})
	}
	users.Wait()
}

// TestRotationForgets replaces many secrets, again and again: each time the store takes over the new values, and forgets the oldest former ones if
// there are too many, or too many bytes of them.
func TestRotationForgets(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	for _, c := range []struct {
		name                  string
		secrets, bytes, finds int // finds is how many former values of each secret are looked for
	}{
		{"many", 1000, 20, 4},
		{"large", 16, 64 << 10, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := private(t)
			value := func(round int) string {
				start := fmt.Sprintf("value-of-round-%03d", round)
				return start + strings.Repeat("x", c.bytes-len(start))
			}
			s := secret.NewStore(nil)
			const rounds = 7
			for round := range rounds {
				files := map[string]string{}
				path := testkit.Put(t, dir, fmt.Sprint(round), value(round))
				for i := range c.secrets {
					files[fmt.Sprint("name", i)] = path
				}
				v, _, err := secret.Read(secret.Sources{Files: files})
				if err != nil {
					t.Fatal(err)
				}
				warning := s.Add(v)
				if forgets := round > c.finds; forgets != strings.Contains(warning, fmt.Sprint(c.secrets, " former values, used until 20")) || strings.Contains(warning, "value-of") {
					t.Errorf("round %d: got the warning %q, want one: %v", round, warning, forgets)
				}
			}
			found := s.Redactor(secret.NamesOf("name3"))
			for round := range rounds {
				if got, want := found.String(value(round)) == "[secret]", round >= rounds-1-c.finds; got != want {
					t.Errorf("the value of round %d is found: %v, want %v", round, got, want)
				}
			}
		})
	}
}

// TestFormerValues replaces a secret a hundred times, once a minute. Its former values are looked for as long as a call may still have one, however
// many there are, but not forever.
// Proves: Secrets stay secret
func TestFormerValues(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, and takes twenty times as long with the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		dir := private(t)
		value := func(n int) string { return fmt.Sprintf("the-value-of-minute-%03d", n) }
		s := secret.NewStore(nil)
		replace := func(n int) {
			t.Helper()
			v, _, err := secret.Read(secret.Sources{Files: map[string]string{"key": testkit.Put(t, dir, "key", value(n))}})
			if err != nil {
				t.Fatal(err)
			}
			if warning := s.Add(v); warning != "" {
				t.Error(warning)
			}
		}
		const minutes = 100
		for n := range minutes {
			replace(n)
			time.Sleep(time.Minute)
		}
		finds := func(n int) bool { return s.Redactor(secret.NamesOf("key")).String(value(n)) == "[secret]" }
		for n := range minutes {
			if !finds(n) {
				t.Errorf("the value of minute %d is no longer looked for", n)
			}
		}
		time.Sleep(time.Hour)
		replace(minutes)
		for n, want := range map[int]bool{0: false, 10: false, 60: true, 99: true, minutes: true} {
			if got := finds(n); got != want {
				t.Errorf("an hour later the value of minute %d is looked for: %t, want %t", n, got, want)
			}
		}
	})
}
