package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/internal/script"
)

// packageFile is the file in which an npm package names its main file.
const packageFile = "package.json"

// readScripts finds out which of the scripts in the project's folder is its tool.
func (p *Project) readScripts(names []string) error {
	name, err := p.mainScript(names)
	if err != nil {
		return err
	}
	p.Script = filepath.Join(p.Dir, name)
	p.Language = Language(script.LanguageOf(name))
	return nil
}

// mainScript returns the name of the tool's script, in the folder or below it.
func (p *Project) mainScript(names []string) (string, error) {
	text, err := readBounded(filepath.Join(p.Dir, packageFile), 1<<20)
	if err == nil {
		var said struct{ Main string }
		if err := json.Unmarshal(text, &said); err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Join(p.Dir, packageFile), err)
		}
		if main := filepath.FromSlash(said.Main); script.LanguageOf(main) != "" {
			if !filepath.IsLocal(main) || !hasFile(p.Dir, main) {
				return "", fmt.Errorf("%s: main: there is no script %s in the folder", filepath.Join(p.Dir, packageFile), said.Main)
			}
			return main, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the package: %w", err)
	}
	var tools []string
	usual := [2]string{}
	for _, name := range names {
		if script.IsPart(name) {
			continue
		}
		tools = append(tools, name)
		switch stem := strings.TrimSuffix(name, filepath.Ext(name)); stem {
		case p.Name, strings.ReplaceAll(p.Name, "-", "_"):
			usual[0] = name
		case "main", "index":
			usual[1] = name
		}
	}
	for _, name := range usual {
		if name != "" {
			return name, nil
		}
	}
	switch len(tools) {
	case 0:
		return "", fmt.Errorf("%s has only modules and tests, but no script that is a tool: name one", p.Dir)
	case 1:
		return tools[0], nil
	}
	return "", fmt.Errorf("%s has %d scripts, but a project is one module: name one of %s, or give it the name of the folder",
		p.Dir, len(tools), strings.Join(tools, ", "))
}

// Output returns the default path for the module of a project that was opened at a path.
func (p *Project) Output(path string) string {
	if p.Script != "" && filepath.Base(path) == filepath.Base(p.Script) {
		path = filepath.Dir(path)
	}
	return filepath.Join(path, p.Name+".wasm")
}

// SetWith adds folders with packages for a Python script.
func (p *Project) SetWith(folders []string) error {
	if len(folders) > 0 && p.Language != Python {
		return errors.New("only a Python script takes folders with more packages")
	}
	p.With = folders
	return nil
}
