package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/redact"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// The bounds of secrets.
const (
	maxSecret  = 64 << 10 // bytes of a secret
	maxSecrets = 1000
	maxTotal   = 1 << 20 // bytes of all

	// MaxName is the length of the longest name of a secret in bytes.
	MaxName = 64
)

// Sources say where secrets are read from. If several have a secret of the same name, Files take precedence over Environment, and Environment over
// Directory.
type Sources struct {
	// Directory has a file for each secret, which is named like it, as Kubernetes, Docker and systemd mount them. Folders in it, other than
	// [Principals], and files whose names begin with a dot are ignored. If empty, there is no directory.
	Directory string
	// Files are paths by the names of secrets.
	Files map[string]string
	// Environment are environment variables by the names of secrets.
	Environment map[string]string
	// Lines are the lines of the configuration with the entries of Files and Environment, by the names of secrets. If there is a line, errors and
	// warnings mention it in place of the name, which may be a secret in the wrong place. Lines may be nil.
	Lines map[string]int
}

// Principals is a folder in Sources.Directory. It has a folder for each caller with secrets of its own, which is named after the caller's
// [personal.ID] and has a file for each secret.
const Principals = "principals"

// Values are the secrets that the sources had when they were read. Only secrets that callers set are changed later.
type Values struct {
	named   map[string]string // including callers' own, by ownName
	number  uint64            // set by Store.Add: later Values have higher numbers
	after   uint64            // the number of the Values that were in force then; 0 if there were none
	brought atomic.Pointer[brought]
	// wasInForce is set before later Values are published.
	wasInForce atomic.Bool
}

// Has reports whether there is a secret with that name.
func (v *Values) Has(name string) bool {
	_, ok := v.named[name]
	return ok
}

// WasInForce reports whether the configuration with these Values was in force when a later one was made.
func (v *Values) WasInForce() bool { return v.wasInForce.Load() }

// Names returns the names of all secrets, sorted.
func (v *Values) Names() []string { return slices.Sorted(maps.Keys(v.named)) }

// Read reads the secrets of all sources. One newline at the end of a secret is dropped. A secret has 8 bytes to 64 KiB; there are at most 1,000
// secrets, with 1 MiB together. A value that can't be a secret is an error, but in the directory, which may contain other files, it is only a
// warning. There are also warnings about files that every user can read, and about short secrets. Neither errors nor warnings show content.
func Read(s Sources) (v *Values, warnings []string, err error) {
	r := reader{values: map[string]string{}, lines: s.Lines}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		r.explicit(name, func() ([]byte, error) { return r.file(s.Files[name], os.OpenFile) })
	}
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		if _, twice := s.Files[name]; twice {
			continue
		}
		r.explicit(name, func() ([]byte, error) { return variable(s.Environment[name]) })
	}
	if s.Directory != "" {
		r.directory(s.Directory)
	}
	if len(r.values) > maxSecrets {
		r.fail("there are more than %d secrets, including callers' own", maxSecrets)
	}
	total := 0
	for _, value := range r.values {
		total += len(value)
	}
	if total > maxTotal {
		r.fail("the secrets have more than 1 MiB together")
	}
	r.warnOpen()
	r.warnShort()
	if len(r.errs) > 0 {
		return nil, r.warnings, errors.Join(r.errs...)
	}
	return &Values{named: r.values}, r.warnings, nil
}

// A reader is the state of one call of Read.
type reader struct {
	values   map[string]string
	warnings []string
	errs     []error
	open     []string // files that every user can read
	lines    map[string]int
}

// shown returns the name or line by which messages refer to a secret.
func (r *reader) shown(name string) string {
	if line, ok := r.lines[name]; ok {
		return fmt.Sprintf("of line %d", line)
	}
	return strconv.Quote(name)
}

// pathless returns an error without the path that could not be opened: it may be a secret in the wrong place.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("its path can't be opened (a relative path begins at the configuration's folder): %w", e.Err)
	}
	return err
}

func (r *reader) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// explicit reads a secret that the configuration names.
func (r *reader) explicit(name string, read func() ([]byte, error)) {
	if err := CheckName(name); err != nil {
		r.errs = append(r.errs, err)
		return
	}
	content, err := read()
	if err == nil {
		r.values[name], err = valueOf(content)
	}
	if err != nil {
		r.fail("read the secret %s: %w", r.shown(name), pathless(err))
	}
}

// directory reads the secrets of a directory.
func (r *reader) directory(path string) {
	// Kubernetes replaces all files at once, by changing the link ..data to a folder with the new files. The link is followed only once, so that all
	// files are from the same time.
	if data, err := filepath.EvalSymlinks(filepath.Join(path, "..data")); err == nil {
		path = data
	}
	entries, err := list(path)
	if err != nil {
		r.fail("read the directory of secrets: %w", pathless(err))
		return
	}
	callers := false
	for _, entry := range entries {
		name := entry.Name()
		if _, named := r.values[name]; named || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(path, name)
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			callers = callers || name == Principals
			continue
		}
		r.implicit(file, name, name, func() ([]byte, error) { return r.file(file, os.OpenFile) })
	}
	if callers {
		r.principals(filepath.Join(path, Principals))
	}
}

// list returns the entries of a directory, sorted by name.
func list(path string) ([]fs.DirEntry, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxSecrets + 1)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(entries) > maxSecrets:
		return nil, fmt.Errorf("%s has more than %d entries: give a directory with only secrets", path, maxSecrets)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// implicit reads a secret from a directory, which may contain other files, too.
func (r *reader) implicit(file, name, as string, read func() ([]byte, error)) {
	err := CheckName(name)
	var value string
	if err == nil {
		var content []byte
		if content, err = read(); err == nil {
			value, err = valueOf(content)
		}
	}
	if err != nil {
		r.warn("%s is not used as a secret: %v", file, err)
		return
	}
	r.values[as] = value
}

// principals reads callers' own secrets. It lists the folders and compares their names, since some file systems would also find a name that differs
// in upper and lower case. It only follows links that stay in a caller's folder, as those of Kubernetes do: others could lead to another caller's
// secrets.
func (r *reader) principals(path string) {
	folders, err := list(path)
	if err != nil {
		r.fail("read the secrets of callers: %w", pathless(err))
		return
	}
	for _, folder := range folders {
		if strings.HasPrefix(folder.Name(), ".") {
			continue
		}
		inside := filepath.Join(path, folder.Name())
		id, err := personal.Parse(folder.Name())
		if err == nil && !folder.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err == nil {
			err = r.principal(inside, id)
		}
		if err != nil {
			r.warn("%s is not used for a caller's secrets: %v", inside, err)
		}
	}
}

// principal reads the secrets of one caller.
func (r *reader) principal(path string, id personal.ID) error {
	files, err := list(path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range files {
		name := file.Name()
		if strings.HasPrefix(name, ".") || file.IsDir() || len(r.values) > maxSecrets {
			continue
		}
		whole := filepath.Join(path, name)
		r.implicit(whole, name, ownName(name, id), func() ([]byte, error) {
			return r.file(whole, func(_ string, flag int, mode fs.FileMode) (*os.File, error) { return root.OpenFile(name, flag, mode) })
		})
	}
	return nil
}

// file reads a file, and records whether every user can read it.
func (r *reader) file(path string, open func(string, int, fs.FileMode) (*os.File, error)) ([]byte, error) {
	// Without O_NONBLOCK, opening a FIFO would wait until somebody writes to it.
	f, err := open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 && reachable(path) {
		r.open = append(r.open, path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+3)) // 3: a carriage return, a newline, and one byte too many
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return content, nil
}

// reachable reports whether every user may search all folders on the way to a file.
func reachable(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return true // not known
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// warnOpen adds one warning for all files that every user can read: a mount may have many of them.
func (r *reader) warnOpen() {
	const few = 3
	switch n := len(r.open); {
	case n == 0:
	case n <= few:
		r.warn("every user of this machine can read %s: chmod o-r, or set defaultMode 0400 in Kubernetes", strings.Join(r.open, ", "))
	default:
		r.warn("every user of this machine can read %s and %d more secrets: chmod o-r, or set defaultMode 0400 in Kubernetes", r.open[0], n-1)
	}
}

// warnShort adds one warning for all secrets that can be guessed. A caller that can send text through a tool with a secret learns whether the text is
// the secret.
func (r *reader) warnShort() {
	const enough, few = 16, 3
	var short []string
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		if len(r.values[name]) < enough {
			if _, ok := r.lines[name]; ok {
				name = "that " + r.shown(name)
			}
			short = append(short, name)
		}
	}
	if n := len(short); n > few {
		short = append(short[:few], fmt.Sprintf("%d more", n-few))
	}
	if short != nil {
		r.warn("secrets of fewer than %d bytes can be guessed by callers of the tools that use them: %s", enough, strings.Join(short, ", "))
	}
}

// variable returns the value of an environment variable.
func variable(name string) ([]byte, error) {
	value, ok := os.LookupEnv(name)
	if !ok {
		return nil, errors.New("there is no such environment variable")
	}
	return []byte(value), nil
}

// valueOf returns the secret that a source contains. The error does not show it.
func valueOf(content []byte) (string, error) {
	if line, ok := bytes.CutSuffix(content, []byte("\n")); ok {
		content = bytes.TrimSuffix(line, []byte("\r"))
	}
	switch {
	case len(content) == 0:
		return "", errors.New("it is empty")
	case len(content) > maxSecret:
		return "", errors.New("it is larger than 64 KiB")
	case !redact.Findable(string(content)):
		return "", errors.New("it has fewer than 8 letters, digits or signs: it could not be kept out of logs and answers")
	}
	return string(content), nil
}

// CheckName reports what is wrong with the name of a secret, or nil: it is 1 to 64 of the characters A-Z a-z 0-9 . _ and -, and
// does not begin with a dot.
func CheckName(s string) error {
	if wasmtools.CheckName(strings.ReplaceAll(s, ".", "_")) != nil || s[0] == '.' {
		return fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, without a dot at the beginning", text.Short(s))
	}
	return nil
}
