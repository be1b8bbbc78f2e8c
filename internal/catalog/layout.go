package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// These bound the files that are laid out for one script.
const (
	maxParts      = 1000
	maxPartsBytes = 32 << 20
)

// buildElsewhere builds a script whose source is not on disk. It writes the script and the parts into a folder, under their IDs.
func (s *scripts) buildElsewhere(ctx context.Context, e Entry, instead []byte, parts map[string]Entry) (module wasmbin.Made, changed change, err error) {
	folder := func() (string, error) { return os.MkdirTemp("", "toolsrv-script-") }
	if source, ok := s.source.(interface{ Scratch() (string, error) }); ok {
		folder = source.Scratch
	}
	root, err := folder()
	if err != nil {
		return module, nil, &PassingError{Err: fmt.Errorf("make a folder for what a script needs: %w", err)}
	}
	defer os.RemoveAll(root)
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return module, nil, &PassingError{Err: err}
	}
	all, bytes := []Entry{e}, e.Size
	for _, part := range parts {
		if part.ID != e.ID {
			all, bytes = append(all, part), bytes+max(0, min(part.Size, maxPartsBytes))
		}
	}
	unchanged := func(map[string]Entry, map[string]bool) bool { return false }
	if len(all) > maxParts || bytes > maxPartsBytes {
		return module, unchanged, fmt.Errorf("its source has %d files with %d bytes for it to import; at most %d files with %d bytes are allowed: remove those that no script needs",
			len(all), bytes, maxParts, maxPartsBytes)
	}
	for _, one := range all {
		if !filepath.IsLocal(filepath.FromSlash(one.ID)) {
			return module, unchanged, fmt.Errorf("%q is not a path that a script could import: the source is at fault", one.ID)
		}
		if one.ID == e.ID && instead != nil {
			if err := layOut(root, e.ID, instead); err != nil {
				return module, nil, err
			}
			continue
		}
		if err := s.lay(ctx, root, one); err != nil {
			return module, nil, err
		}
	}
	module, inputs, err := s.builder.Build(ctx, root, filepath.Join(root, filepath.FromSlash(e.ID)), instead)
	if passes(ctx, err) {
		return module, nil, passing(ctx, err)
	}
	for i, input := range inputs {
		if inputs[i], _ = filepath.Rel(root, input); inputs[i] == e.ID { // the script itself: its version shows changes
			inputs[i] = ""
		}
		inputs[i] = filepath.ToSlash(inputs[i])
	}
	return module, func(now map[string]Entry, _ map[string]bool) bool {
		return slices.ContainsFunc(inputs, func(id string) bool { return now[id].Version != parts[id].Version })
	}, err
}

// lay writes a file of the source into a folder.
func (s *scripts) lay(ctx context.Context, root string, e Entry) error {
	content, err := s.patience.read(ctx, s.source, e, nil)
	if err != nil {
		return err
	}
	return layOut(root, e.ID, content)
}

func layOut(root, id string, content []byte) error {
	path := filepath.Join(root, filepath.FromSlash(id))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		return &PassingError{Err: fmt.Errorf("lay out what a script needs: %w", err)}
	}
	return nil
}
