package project

import "io"

// MaxModule is the largest module that Compile returns, in bytes.
const MaxModule = maxModule

// ReadArtifacts returns the .wasm files that Cargo's messages name for the package of manifest.
func ReadArtifacts(manifest string, messages io.Reader) ([]string, error) {
	a := artifacts{manifest: manifest}
	err := a.read(messages)
	return a.files, err
}

// SetMost changes how many files and folders w looks at.
func (w *Watcher) SetMost(n int) { w.most = n }
