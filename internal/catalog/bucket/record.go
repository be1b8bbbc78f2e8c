package bucket

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/versions"
)

const (
	// form is the version of the form of records.
	form byte = 1
	// maxRecord bounds the size of a record in bytes. A record has a few versions and a reason.
	maxRecord = 32 << 10
	// maxPaths bounds the bytes of paths that are noted for a version. If a version has more, each server decides by itself who has those paths.
	maxPaths = 4 << 10
	// maxKept is how many versions a record may have. Newer versions of toolsrv may keep more than this one does.
	maxKept = 50
)

// A record is what the state knows of a file. It never changes.
type record struct {
	// Digest is the digest of the content, and empty if the file was removed.
	Digest string `json:"digest,omitempty"`
	// Back is the rollback that is served in place of Digest, or nil.
	Back *back `json:"back,omitempty"`
	// Held is the version of the record since which the file has gained no new paths; 0 means the record's own version. If two files want one path,
	// the one that has held its paths for longer has it, on all servers.
	Held uint64 `json:"held,omitempty"`
	// Kept are the versions whose contents are kept, including the one that is served, the newest first.
	Kept []kept `json:"kept"`
}

// kept is a version.
type kept struct {
	Digest string    `json:"digest"`
	Size   int64     `json:"size"`
	Since  time.Time `json:"since"`
	Paths  []string  `json:"paths,omitempty"` // the paths of its tools, unless there are too many
}

// back is a rollback.
type back struct {
	Digest string    `json:"digest"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
}

var digests = regexp.MustCompile(`^[0-9a-f]{64}$`)

// decode reads a record. It must not be trusted: whoever may write to the bucket may have written it.
func decode(value []byte) (r record, err error) {
	if len(value) > maxRecord {
		return r, fmt.Errorf("its record has %d bytes; at most %d are allowed", len(value), maxRecord)
	}
	if err := state.Decode(value, form, &r); err != nil {
		return record{}, err
	}
	if err := r.check(); err != nil {
		return record{}, err
	}
	return r, nil
}

var errForeign = errors.New("its record was not written by toolsrv")

func (r *record) check() error {
	if len(r.Kept) > maxKept {
		return errForeign
	}
	for _, k := range r.Kept {
		if !digests.MatchString(k.Digest) || k.Size < 0 || k.Size > sandbox.MaxModule {
			return errForeign
		}
	}
	if r.Digest != "" && r.find(r.Digest) == nil || r.Back != nil && (r.Digest == "" || r.find(r.Back.Digest) == nil) {
		return errForeign
	}
	return nil
}

// find returns a version, or nil.
func (r *record) find(digest string) *kept {
	if i := slices.IndexFunc(r.Kept, func(k kept) bool { return k.Digest == digest }); i >= 0 {
		return &r.Kept[i]
	}
	return nil
}

// serves returns the version that is served, or nil.
func (r *record) serves() *kept {
	if r.Back != nil {
		return r.find(r.Back.Digest)
	}
	return r.find(r.Digest)
}

// with returns the record of the same file with a new version. If the file was rolled back, the version that was served becomes the previous one,
// so that the next rollback serves it again. most is how many versions are kept.
func (f *file) with(v kept, most int, now time.Time) record {
	next := record{Digest: v.Digest, Kept: slices.Clone(f.Kept), Held: f.held(&v)}
	if f.Back != nil {
		next.last(*f.serves(), now)
	}
	next.last(v, now)
	next.Kept = next.Kept[:min(len(next.Kept), max(most, 1))]
	return next
}

// held returns what Held is once the file serves this version.
func (f *file) held(v *kept) uint64 {
	served := f.serves()
	if served == nil || slices.ContainsFunc(v.Paths, func(path string) bool { return !slices.Contains(served.Paths, path) }) {
		return 0
	}
	return cmp.Or(f.Held, f.version)
}

// noted returns paths, if they are not too many to be noted.
func noted(paths []string) []string {
	n := 0
	for _, path := range paths {
		if n += len(path); n > maxPaths {
			return nil
		}
	}
	return paths
}

// claim returns, by name, the files whose paths others have held for longer, and why each is not served.
func claim(files map[string]file) map[string]error {
	var names []string
	for name, f := range files {
		if served := f.serves(); f.err == nil && !f.hidden && served != nil && len(served.Paths) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		fa, fb := files[a], files[b]
		return cmp.Or(cmp.Compare(cmp.Or(fa.Held, fa.version), cmp.Or(fb.Held, fb.version)), cmp.Compare(a, b))
	})
	lost, holders := map[string]error{}, map[string]string{}
	for _, name := range names {
		f := files[name]
		paths := f.serves().Paths
		if at := slices.IndexFunc(paths, func(path string) bool { return holders[path] != "" }); at >= 0 {
			lost[name] = fmt.Errorf("has the tool %s, which was in %s first: remove one of the files", text.Short(paths[at]), holders[paths[at]])
			continue
		}
		for _, path := range paths {
			holders[path] = name
		}
	}
	return lost
}

// last makes a version the newest one.
func (r *record) last(v kept, now time.Time) {
	v.Since = now
	if len(r.Kept) > 0 && !now.After(r.Kept[0].Since) {
		v.Since = r.Kept[0].Since.Add(time.Millisecond)
	}
	r.Kept = append([]kept{v}, slices.DeleteFunc(r.Kept, func(k kept) bool { return k.Digest == v.Digest })...)
}

// versions returns the versions of the file.
func (r *record) versions() []versions.Version {
	all := make([]versions.Version, 0, len(r.Kept))
	for _, k := range r.Kept {
		all = append(all, versions.Version{Digest: k.Digest, Size: k.Size, Since: k.Since})
	}
	return all
}
