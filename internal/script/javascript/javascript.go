// Package javascript makes one file of a script in JavaScript or TypeScript and of all that it imports, for the engine that runs
// it. It runs nothing of what it reads.
//
// A bundle has three files. The first has the script's name and is one ES module, which imports nothing but the package
// toolsrv. source.map has the author's lines: sdk/js/trace.js says how. tools.json is a list of what the script says of its exports in comments
// and types, each as package comment has it.
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
	// Root confines what is read to this folder and what is below it: nothing else is looked at, and what leads out of it
	// is an error. Empty, the script may import what its author can read, such as packages of a node_modules above it.
	Root string
	// Content is what the script's own file has, in place of what lies there, if anything does; only with a Root. If nil, the file is read.
	Content []byte
}

// Collect bundles a script. It returns the files of its bundle, and the paths on disk of all that was read, which says when it must be bundled
// again. These come with an error, too. The error is for the script's author and may have several lines, each place as file:line:column; the files'
// names in it are relative to the script's folder.
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

// loaders say what an imported file is, by its extension: what a tool has no use for as code or style is text, and pictures are bytes.
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

// A sourceMap is one of esbuild's.
type sourceMap struct {
	Sources        []string  `json:"sources"`
	SourcesContent []*string `json:"sourcesContent"`
	Mappings       string    `json:"mappings"`
}
