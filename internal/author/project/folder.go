package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// These are the files of a folder to serve, and the folder of its tools.
const (
	configFile  = "toolsrv.toml"
	ignoreFile  = ".gitignore"
	toolsFolder = "tools"
)

// A Folder is the result of Init.
type Folder struct {
	// Made are the new files and folders, with slashes, relative to the folder.
	Made []string
	// Kept has a sentence for everything that was left as it was, with the consequence.
	Kept []string
	// First is the script of the first tool, or the folder of its project, with slashes. It is empty if the folder already had tools.
	First string
}

// scriptTemplate returns the template of a first tool that is a script, or "" if the language is compiled.
func scriptTemplate(l Language) string {
	switch l {
	case Python:
		return "template/python/main.py.tmpl"
	case JavaScript:
		return "template/javascript/index.js.tmpl"
	case TypeScript:
		return "template/typescript/index.ts.tmpl"
	}
	return ""
}

// Init makes dir, which need not exist, a folder to serve: with a configuration, a folder for tools, and a first tool. The tool is in the folder for
// tools or, if its language is compiled, in a project beside it. Nothing that exists is changed. After an error, nothing new is left.
func Init(dir string, s Scaffold) (*Folder, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var f Folder
	plan, err := f.plan(dir, s)
	if err != nil {
		return nil, err
	}
	var undo []func()
	for _, step := range plan {
		made, err := step.make(dir)
		undo = append(undo, made...)
		if err != nil {
			for _, remove := range slices.Backward(undo) {
				remove()
			}
			return nil, fmt.Errorf("set up the folder: %w", err)
		}
		f.Made = append(f.Made, step.name)
	}
	return &f, nil
}

// A step makes a file, a folder, or a project in a folder.
type step struct {
	name    string // the path in the folder, with slashes
	content []byte // nil for a folder
	project *Scaffold
}

// make makes the step's file, folder or project, and the folders above it. It changes no existing file. undo removes what is new.
func (s step) make(dir string) (undo []func(), err error) {
	name := filepath.Join(dir, filepath.FromSlash(s.name))
	if s.project != nil {
		if undo, err = makeFolders(filepath.Dir(name)); err == nil {
			err = New(name, *s.project)
		}
		return append(undo, func() { _ = os.RemoveAll(name) }), err // the folder was empty or missing, since otherwise plan would have kept it
	}
	if s.content == nil {
		return makeFolders(name)
	}
	if undo, err = makeFolders(filepath.Dir(name)); err != nil {
		return undo, err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return undo, err
	}
	_, err = file.Write(s.content)
	return append(undo, func() { _ = os.Remove(name) }), errors.Join(err, file.Close())
}

// makeFolders is like os.MkdirAll, and returns functions that remove the new folders. A folder into which somebody else has put something stays.
func makeFolders(dir string) (undo []func(), err error) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil, nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if undo, err = makeFolders(parent); err != nil {
			return undo, err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return undo, err
	}
	return append(undo, func() { _ = os.Remove(dir) }), nil
}

// plan looks at a folder, and returns what is kept and which steps are to be made. The project comes first, since it fails most often.
func (f *Folder) plan(dir string, s Scaffold) (steps []step, err error) {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("look at the folder: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s exists and is not a folder: choose another name", dir)
	}
	exists := func(name string) bool { // dangling links exist, too
		_, err := os.Lstat(filepath.Join(dir, name))
		return !errors.Is(err, fs.ErrNotExist)
	}
	if exists(configFile) {
		return nil, fmt.Errorf("%s has a %s already, so nothing was changed: toolsrv up serves it, and toolsrv new makes another tool", dir, configFile)
	}
	tools, err := holdsFiles(filepath.Join(dir, toolsFolder))
	if err != nil {
		return nil, err
	}
	script := scriptTemplate(s.Language)
	switch {
	case tools:
		f.Kept = append(f.Kept, fmt.Sprintf("%s already contains files, which are kept: no first tool was added.", toolsFolder))
	case script != "":
		content, err := render(script, s.words())
		if err != nil {
			return nil, err
		}
		f.First = path.Join(toolsFolder, s.Name+path.Ext(script[:len(script)-len(".tmpl")]))
		steps = append(steps, step{name: f.First, content: content})
	default:
		inside, err := holdsFiles(filepath.Join(dir, s.Name))
		if err != nil {
			return nil, err
		}
		if inside {
			f.Kept = append(f.Kept, fmt.Sprintf("%s already contains files, which are kept: no first tool was made.", s.Name))
			break
		}
		f.First = s.Name
		steps = append(steps, step{name: s.Name, project: &s})
	}
	if !tools && script == "" {
		steps = append(steps, step{name: toolsFolder})
	}
	ignore, err := render("template/folder/gitignore.tmpl", map[string]string{"Script": when(script != "")})
	if err != nil {
		return nil, err
	}
	if exists(ignoreFile) {
		f.Kept = append(f.Kept, ignoreFile+" is kept as it is: it should leave out /secrets/ and /state/.")
	} else {
		steps = append(steps, step{name: ignoreFile, content: ignore})
	}
	config, err := templates.ReadFile("template/folder/" + configFile)
	return append(steps, step{name: configFile, content: config}), err
}

// holdsFiles reports whether a folder has anything in it. A missing one has nothing.
func holdsFiles(dir string) (bool, error) {
	info, err := os.Stat(dir) // checked before opening it, since opening a pipe would wait
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(dir); err == nil {
			return false, fmt.Errorf("%s is a link that leads nowhere: remove it, because a folder with that name is needed", dir)
		}
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a folder: move it away, because a folder with that name is needed", dir)
	}
	opened, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer opened.Close()
	switch _, err := opened.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// render returns a template filled in with values.
func render(name string, values map[string]string) ([]byte, error) {
	content, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	filled, err := fill(string(content), values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []byte(filled), nil
}

// words returns the values for templates, without those that depend on the SDK.
func (s Scaffold) words() map[string]string {
	return map[string]string{"Name": s.Name, "Namespace": s.Namespace, "Path": s.Path()}
}

// when returns the value for a condition.
func when(holds bool) string {
	if holds {
		return "true"
	}
	return ""
}
