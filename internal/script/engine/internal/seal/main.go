// Seal makes an engine of a linker's module: it adds the section in which the engine says what it is, tries it, and writes it with its
// licences to the folder that package engine embeds.
//
// It takes the folder of a build, with NAME.wasm and NAME.licenses.txt, and the folder to write to. With -check it compares with the
// existing files instead.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

func main() {
	var about engine.About
	flag.StringVar(&about.Name, "name", "", "the language")
	flag.StringVar(&about.Version, "version", "", "the interpreter and its version")
	flag.StringVar(&about.Revision, "revision", "", "a digest of what it was built from")
	flag.IntVar(&about.Capacity, "capacity", 0, "the size of the region for a bundle in bytes")
	compare := flag.Bool("check", false, "compare with what is in DIST, and write nothing")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: seal [-check] -name NAME -version VERSION -revision REVISION -capacity BYTES BUILD DIST")
		os.Exit(2)
	}
	if err := seal(about, flag.Arg(0), flag.Arg(1), *compare); err != nil {
		fmt.Fprintf(os.Stderr, "seal: %v\n", err)
		os.Exit(1)
	}
}

func seal(about engine.About, build, dist string, compare bool) error {
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
	licenses, err := os.ReadFile(filepath.Join(build, about.Name+".licenses.txt"))
	if err != nil {
		return err
	}
	if compare {
		return check(about, module, licenses, dist)
	}
	packed, err := pack(module)
	if err != nil {
		return err
	}
	for suffix, content := range map[string][]byte{".licenses.txt": licenses, ".about.json": append(section, '\n')} {
		if err := write(filepath.Join(dist, about.Name+suffix), content); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(dist, about.Name+".wasm.gz"), packed); err != nil {
		return err
	}
	fmt.Printf("engine %s: %s (%s), %d bytes, %d packed\n", about.Name, about.Version, about.Revision, len(module), len(packed))
	return nil
}

// check compares an unpacked engine, its description and its licences with those in a folder.
func check(about engine.About, module, licenses []byte, dist string) error {
	set := engine.From(os.DirFS(dist))
	kept, err := set.Open(about.Name)
	if err != nil {
		return err
	}
	text, err := set.Licenses(about.Name)
	if err != nil {
		return err
	}
	list, err := set.List()
	if err != nil {
		return err
	}
	if !bytes.Equal(kept.Module(), module) || text != string(licenses) || !slices.Contains(list, about) {
		return fmt.Errorf("the engine %s (%s) in %s is not what its sources make", about.Name, kept.Revision, dist)
	}
	fmt.Printf("engine %s: built again, the same: sha256 %x\n", about.Name, sha256.Sum256(module))
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
