package project

import "io"

// ReadArtifacts returns the .wasm files that Cargo's messages name for the package of manifest.
func ReadArtifacts(manifest string, messages io.Reader) ([]string, error) {
	a := artifacts{manifest: manifest}
	err := a.read(messages)
	return a.files, err
}
