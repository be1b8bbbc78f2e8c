// Seal makes an engine of a module that a linker wrote: it adds the section in which the engine says what it is, tries whether it is
// whole, and writes it with its licences to the folder that package engine embeds.
//
// It takes the folder of a build, with NAME.wasm and NAME.licenses.txt, and the folder to write to.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

func main() {
	var about engine.About
	flag.StringVar(&about.Name, "name", "", "the language")
	flag.StringVar(&about.Version, "version", "", "the interpreter and its version")
	flag.StringVar(&about.Revision, "revision", "", "a digest of what it was built from")
	flag.IntVar(&about.Capacity, "capacity", 0, "the size of the region for a bundle in bytes")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: seal -name NAME -version VERSION -revision REVISION -capacity BYTES BUILD DIST")
		os.Exit(2)
	}
	if err := seal(about, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintf(os.Stderr, "seal: %v\n", err)
		os.Exit(1)
	}
}

func seal(about engine.About, build, dist string) error {
	module, err := os.ReadFile(filepath.Join(build, about.Name+".wasm"))
	if err != nil {
		return err
	}
	section, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if module, err = wasmbin.SetCustom(module, engine.Section, section); err != nil {
		return err
	}
	if _, err := engine.Parse(module); err != nil {
		return err
	}
	packed, err := pack(module)
	if err != nil {
		return err
	}
	licenses, err := os.ReadFile(filepath.Join(build, about.Name+".licenses.txt"))
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dist, about.Name+".licenses.txt"), licenses); err != nil {
		return err
	}
	if err := write(filepath.Join(dist, about.Name+".wasm.gz"), packed); err != nil {
		return err
	}
	fmt.Printf("engine %s: %s (%s), %d bytes, %d packed\n", about.Name, about.Version, about.Revision, len(module), len(packed))
	return nil
}

// pack compresses without a time or a name, so that one engine is packed to the same bytes.
func pack(module []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(module); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// write leaves a file alone that has this content already, so that the Go tool need not build again what embeds it.
func write(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o644); err != nil { //nolint:gosec // it is embedded into a public binary
		return err
	}
	return os.Rename(temporary, path)
}
