package oci

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzSource unpacks foreign archives. The result is bounded, its names stay inside the folder, and it can be packed again.
func FuzzSource(f *testing.F) {
	good, err := packSource([]SourceFile{{"csv.py", []byte("import parts.rows")}, {"parts/rows.py", nil}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bytes.ReplaceAll(good, []byte("parts/rows.py"), []byte("../../rows.py")))
	f.Add(good[:700])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		files, err := unpackSource(content)
		if err != nil {
			return
		}
		again, err := packSource(files)
		if err != nil {
			t.Fatalf("%q is not packed again: %v", files, err)
		}
		if len(again) > maxSourceLayer {
			t.Fatalf("it has %d bytes, and %d are pulled", len(again), maxSourceLayer)
		}
		back, err := unpackSource(again)
		slices.SortFunc(files, func(a, b SourceFile) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
		if err != nil || !slices.EqualFunc(files, back, func(a, b SourceFile) bool { return a.Name == b.Name && bytes.Equal(a.Content, b.Content) }) {
			t.Fatalf("got %q, %v, want %q", back, err, files)
		}
	})
}
