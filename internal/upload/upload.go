// Package upload puts modules and scripts into a tools directory and removes them: whole or not at all, and never outside the directory. Names come
// from clients. Only names that every file system accepts are allowed, no symbolic link is followed, and no file gets a name that differs from
// another's only in upper and lower case.
package upload

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	maxDepth = 16  // nested folders, as deep as tools are looked for
	maxName  = 512 // bytes
	// maxEntries is how many entries a folder may have, since all are compared without regard to case.
	maxEntries = 100_000
	// abandoned is the age at which an unfinished file is removed.
	abandoned = time.Hour
)

// ErrLinked is returned if the file, or a folder in its path, is a symbolic link.
var ErrLinked = errors.New("is a symbolic link: change its target")

var part = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// reserved are the names of devices in Windows, with or without an extension.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// libraries are folders in which no tools are looked for.
var libraries = []string{"node_modules", "__pycache__"}

// A Directory is a directory of tools.
type Directory struct {
	// Path is the path of the directory.
	Path string
	// Scripts tells which of its files are scripts. If nil, scripts are not served.
	Scripts Scripts
}

// Scripts tell which files are scripts, by the last element of their names.
type Scripts interface {
	// IsScript reports whether a file is a script.
	IsScript(name string) bool
	// IsPart reports whether a script is a part of others, or a test, and so not served by itself.
	IsPart(name string) bool
}

// CheckName returns what is wrong with the name of a file of tools in the directory, such as "math/add.wasm", or nil.
func (d Directory) CheckName(name string) error {
	parts := strings.Split(name, "/")
	bad := func(why string) error {
		return fmt.Errorf("%q can't be the name of a tool file: %s", text.Short(name), why)
	}
	switch {
	case len(name) > maxName:
		return bad(fmt.Sprintf("it has more than %d bytes", maxName))
	case len(parts) > maxDepth+1:
		return bad(fmt.Sprintf("it is more than %d folders deep", maxDepth))
	case path.Base(name) == ".wasm":
		return bad("it must have a name before .wasm")
	case !strings.HasSuffix(name, ".wasm"):
		if why := d.notScript(parts); why != "" {
			return bad(why)
		}
	}
	for _, p := range parts {
		stem, _, _ := strings.Cut(p, ".")
		switch {
		case len(p) > 100 || !part.MatchString(p):
			return bad("each part must begin with a letter, a digit or _, and have up to 100 of the characters A-Z a-z 0-9 . _ -, with / between two")
		case strings.HasSuffix(p, ".") || strings.HasSuffix(p, ".tmp"):
			return bad("a part may end neither in a dot nor in .tmp")
		case reserved.MatchString(stem):
			return bad(fmt.Sprintf("Windows reserves %q for a device", text.Short(p)))
		case slices.Contains(libraries, strings.ToLower(p)):
			return bad(fmt.Sprintf("folders named %s are ignored", p))
		}
	}
	return nil
}

// notScript returns why a file is not a script that is served by itself, judging by the parts of its path, or "" if it is one.
func (d Directory) notScript(parts []string) string {
	base := parts[len(parts)-1]
	switch {
	case d.Scripts == nil:
		return "it must end in .wasm; scripts are accepted with tools.scripts = true, or scripts in the directory's [[source]]"
	case !d.Scripts.IsScript(base):
		return "it must end in .wasm or like a script"
	case d.Scripts.IsPart(base) || slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, "_") }):
		return "scripts with such names are parts of others, or tests, and are not served by themselves: copy them to the server"
	}
	return ""
}

// takesScripts returns nil if scripts in a folder are served by themselves, or an error that says why they are not.
func takesScripts(folder *os.Root) error {
	names, err := entries(folder)
	if err != nil {
		return err
	}
	for _, name := range []string{"__init__.py", "pyvenv.cfg"} {
		if slices.Contains(names, name) {
			return fmt.Errorf("it would lie below a folder with %s, where scripts are parts of others and are not served by themselves", name)
		}
	}
	return nil
}

// A File is a file that is being written. The caller calls Commit, and then Close.
type File struct {
	folder *os.Root // the folder that it will be in
	base   string
	temp   string // the file's temporary name; empty once the file is in its place
	file   *os.File
	sum    hash.Hash
	size   int64
	undo   func() // removes the folders that were made for the file
}

// Begin makes a temporary file in the folder that the file will be in, and makes that folder if it is missing. The server ignores the temporary file.
func (d Directory) Begin(name string) (*File, error) {
	folder, undo, err := d.open(name, true)
	if err != nil {
		return nil, err
	}
	f := &File{folder: folder, base: path.Base(name), sum: sha256.New(), undo: undo}
	if err := f.begin(); err != nil {
		folder.Close()
		undo()
		return nil, fmt.Errorf("put %s: %w", name, bare(err))
	}
	return f, nil
}

// temporary is the prefix of the names of unfinished files.
const temporary = ".toolsrv-put-"

func (f *File) begin() error {
	if _, err := f.there(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.sweep()
	temp := temporary + rand.Text()[:12] + ".tmp"
	file, err := f.folder.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	f.temp, f.file = temp, file
	return nil
}

// sweep removes unfinished files of killed processes.
func (f *File) sweep() {
	names, err := entries(f.folder)
	if err != nil {
		return
	}
	for _, name := range names {
		if info, err := f.folder.Lstat(name); strings.HasPrefix(name, temporary) && err == nil && time.Since(info.ModTime()) > abandoned {
			_ = f.folder.Remove(name) // if this fails, at worst the file takes up space
		}
	}
}

// there returns what is in the file's place now.
func (f *File) there() (fs.FileInfo, error) { return lookFile(f.folder, f.base) }

// Write writes content.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.sum.Write(p[:n])
	f.size += int64(n)
	return n, bare(err)
}

// Digest returns the SHA-256 of what was written, in lower-case hexadecimal.
func (f *File) Digest() string { return hex.EncodeToString(f.sum.Sum(nil)) }

// Size returns how many bytes were written.
func (f *File) Size() int64 { return f.size }

// Content returns what was written.
func (f *File) Content() ([]byte, error) {
	content := make([]byte, f.size)
	_, err := f.file.ReadAt(content, 0)
	if errors.Is(err, io.EOF) && f.size == 0 {
		err = nil
	}
	return content, bare(err)
}

// Commit puts the file into its place. If it replaces a file, the new file gets the old one's mode. The file is on disk when Commit returns.
func (f *File) Commit() error {
	info, err := f.there()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := f.file.Chmod(info.Mode().Perm()); err != nil {
			return bare(err)
		}
	}
	if err := f.file.Sync(); err != nil {
		return bare(err)
	}
	if err := f.file.Close(); err != nil { // Windows can't rename an open file
		return bare(err)
	}
	if err := f.folder.Rename(f.temp, f.base); err != nil {
		return bare(err)
	}
	f.temp, f.undo = "", func() {}
	sync(f.folder)
	return nil
}

// Close frees the file's resources, and removes the temporary file unless it was committed.
func (f *File) Close() {
	f.file.Close()
	if f.temp != "" {
		_ = f.folder.Remove(f.temp) // if this fails, sweep will remove it
	}
	f.undo()
	f.folder.Close()
}

// Remove removes a file of the directory.
func (d Directory) Remove(name string) error {
	folder, _, err := d.open(name, false)
	if err != nil {
		return err
	}
	defer folder.Close()
	if _, err := lookFile(folder, path.Base(name)); err != nil {
		return err
	}
	if err := folder.Remove(path.Base(name)); err != nil {
		return bare(err)
	}
	sync(folder)
	return nil
}

// Read returns the content of a file of the directory. It is an error if the file has more than most bytes.
func (d Directory) Read(name string, most int64) ([]byte, error) {
	folder, _, err := d.open(name, false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	seen, err := lookFile(folder, path.Base(name))
	if err != nil {
		return nil, err
	}
	// The file may just have been replaced by a FIFO: without O_NONBLOCK, opening that would block until somebody writes to it.
	file, err := folder.OpenFile(path.Base(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !os.SameFile(info, seen) {
		return nil, errors.New("it has changed in the meantime: look at it, and try again")
	}
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return content, bare(err)
}

// open opens the folder of a file in the directory. If it makes missing folders, undo removes them again if they are empty.
func (d Directory) open(name string, make bool) (folder *os.Root, undo func(), err error) {
	if err := d.CheckName(name); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(d.Path + string(filepath.Separator))
	if err != nil {
		return nil, nil, bare(err)
	}
	var made []string
	undo = func() {
		again, err := os.OpenRoot(d.Path)
		if err != nil {
			return
		}
		defer again.Close()
		for _, at := range slices.Backward(made) {
			_ = again.Remove(at) // somebody may have put something into the folder
		}
	}
	parts := strings.Split(name, "/")
	isNewScript := make && !strings.HasSuffix(name, ".wasm")
	if isNewScript {
		if err := takesScripts(root); err != nil {
			root.Close()
			return nil, nil, err
		}
	}
	for i, p := range parts[:len(parts)-1] {
		info, err := look(root, p)
		if errors.Is(err, fs.ErrNotExist) && make {
			if err = root.Mkdir(p, 0o755); err == nil {
				made = append(made, strings.Join(parts[:i+1], "/"))
				sync(root)
			}
			if err == nil || errors.Is(err, fs.ErrExist) { // another upload may just have made the folder
				info, err = look(root, p)
			}
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", strings.Join(parts[:i+1], "/"))
		}
		var next *os.Root
		if err == nil {
			next, err = root.OpenRoot(p)
		}
		root.Close()
		if err == nil && isNewScript {
			if err = takesScripts(next); err != nil {
				next.Close()
			}
		}
		if err != nil {
			undo()
			return nil, nil, bare(err)
		}
		root = next
	}
	return root, undo, nil
}

// look returns the entry of a folder with exactly that name, a regular file or a folder. It is an error if another name differs only in case.
func look(folder *os.Root, name string) (fs.FileInfo, error) {
	names, err := entries(folder)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		if i := slices.IndexFunc(names, func(other string) bool { return strings.EqualFold(other, name) }); i >= 0 {
			return nil, fmt.Errorf("there is %s already, whose name differs from %s only in upper and lower case", names[i], name)
		}
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	info, err := folder.Lstat(name)
	switch {
	case err != nil:
		return nil, bare(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s %w", name, ErrLinked)
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil, fmt.Errorf("%s is neither a file nor a folder", name)
	}
	return info, nil
}

// lookFile is look for a regular file.
func lookFile(folder *os.Root, name string) (fs.FileInfo, error) {
	info, err := look(folder, name)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder", name)
	}
	return info, err
}

// entries returns the names of a folder's entries.
func entries(folder *os.Root) ([]string, error) {
	opened, err := folder.Open(".")
	if err != nil {
		return nil, bare(err)
	}
	defer opened.Close()
	names, err := opened.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, bare(err)
	}
	if len(names) > maxEntries {
		return nil, fmt.Errorf("the folder has more than %d entries", maxEntries)
	}
	return names, nil
}

// sync writes the entries of a folder to disk, if the system can.
func sync(folder *os.Root) {
	if opened, err := folder.Open("."); err == nil {
		_ = opened.Sync() // Windows can't
		opened.Close()
	}
}

// bare returns an error of the system without its path, which may be temporary or reveal the machine's folders.
func bare(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	if failed, ok := errors.AsType[*os.LinkError](err); ok {
		return failed.Err
	}
	return err
}
