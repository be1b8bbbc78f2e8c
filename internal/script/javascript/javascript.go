// Package javascript bundles a script in JavaScript or TypeScript with everything that it imports, for the engine that runs it. It does not
// run what it reads.
//
// A bundle has three files. The first has the script's name and is one ES module, which imports nothing but the package toolsrv. source.map maps the
// bundle to the author's lines; sdk/js/trace.js describes its format. tools.json lists what comments and types in the script say about its exports,
// in the form of package comment.
package javascript

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/toolsrv/toolsrv/internal/script/engine"
)

// Extensions are the endings of files that can be scripts.
func Extensions() []string { return []string{".js", ".mjs", ".ts", ".mts"} }

// Options say how a script is bundled.
type Options struct {
	// Root restricts reading to this folder and everything below it: nothing else is looked at, and what leads out of it is an error. If empty, the
	// script may import what its author can read, such as packages in a node_modules above it.
	Root string
	// Content is the content of the script's own file, in place of the file on disk, which need not exist; only with a Root. If nil, the file is read.
	Content []byte
}

// Collect bundles a script. It returns the files of its bundle, and the paths on disk that were read or looked for: if one of these changes, the
// script must be bundled again. The paths are also returned with an error. The error is for the script's author and may have several lines, each
// place as file:line:column; the files' names in it are relative to the script's folder.
//
// Collect returns early when ctx ends.
func Collect(ctx context.Context, script string, o Options) (files []engine.File, inputs []string, err error) {
	path, err := filepath.Abs(script)
	if err != nil {
		return nil, nil, err
	}
	m := modules{entry: path, folder: filepath.Dir(path), content: o.Content}
	inputs = []string{path}
	switch {
	case o.Root != "":
		if err := m.confine(o.Root); err != nil {
			return nil, inputs, err
		}
		defer m.root.Close()
	case o.Content != nil:
		return nil, inputs, errors.New("the content of a script is given, but not the folder to which reading is restricted")
	}
	result, err := build(ctx, m.options())
	for input := range m.inputs {
		inputs = append(inputs, input)
	}
	slices.Sort(inputs)
	inputs = slices.Compact(inputs)
	if err != nil {
		return nil, inputs, err
	}
	if len(result.Errors) > 0 {
		return nil, inputs, errors.New(messages(&m, result.Errors))
	}
	var code, sources []byte
	for _, file := range result.OutputFiles {
		if strings.HasSuffix(file.Path, ".map") {
			sources = file.Contents
		} else {
			code = file.Contents
		}
	}
	positions, err := m.positions(sources)
	if err != nil {
		return nil, inputs, err
	}
	comments, err := m.comments()
	if err != nil {
		return nil, inputs, err
	}
	return []engine.File{{Name: filepath.Base(path), Data: code}, {Name: "source.map", Data: positions}, {Name: "tools.json", Data: comments}}, inputs, nil
}

// build runs esbuild, and stops it when ctx ends.
func build(ctx context.Context, options api.BuildOptions) (api.BuildResult, error) {
	b, wrong := api.Context(options)
	if wrong != nil {
		return api.BuildResult{Errors: wrong.Errors}, nil
	}
	defer b.Dispose()
	stop := context.AfterFunc(ctx, b.Cancel)
	defer stop()
	result := b.Rebuild()
	return result, ctx.Err()
}

// loaders say, by its extension, what an imported file is. Code or style that a tool can't use is text, and pictures are bytes.
func loaders() map[string]api.Loader {
	out := map[string]api.Loader{}
	for loader, extensions := range map[api.Loader]string{
		api.LoaderText:   ".txt .md .html .css .csv .tsv .svg .xml .yaml .yml .toml .sql .tmpl .hbs .mustache .ejs",
		api.LoaderBinary: ".bin .dat .gz .wasm .png .jpg .jpeg .gif .webp .ico .pdf .ttf .woff .woff2",
	} {
		for _, extension := range strings.Fields(extensions) {
			out[extension] = loader
		}
	}
	return out
}

// A sourceMap is a source map as esbuild writes it.
type sourceMap struct {
	Sources        []string  `json:"sources"`
	SourcesContent []*string `json:"sourcesContent"`
	Mappings       string    `json:"mappings"`
}
