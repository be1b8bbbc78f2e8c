package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// HistoryArguments are the arguments of the operation history.
type HistoryArguments struct {
	Path string `json:"path,omitempty" description:"A file, or a tool in it; by default all files with several versions." maxLength:"4096"`
}

// A History is the kept versions of files.
type History struct {
	Files []Versions `json:"files" description:"The files, by where they lie."`
}

// Versions are the kept versions of one file.
type Versions struct {
	File       string      `json:"file" description:"Where the file lies."`
	Served     string      `json:"served,omitempty" description:"The SHA-256 of the content that is served, or empty."`
	RolledBack *RolledBack `json:"rolled_back,omitempty" description:"Why a version is served that is not the one in its source."`
	Removed    *Removed    `json:"removed,omitempty" description:"Says that the file no longer exists, and who removed it."`
	Versions   []Version   `json:"versions" description:"The versions that are kept, the newest first."`
}

// A RolledBack says how a file was rolled back.
type RolledBack struct {
	Over   string    `json:"over" description:"The SHA-256 of the content in its source, which is served again once it changes."`
	Who    string    `json:"who" description:"Who rolled the file back."`
	Since  time.Time `json:"since" description:"When."`
	Reason string    `json:"reason,omitempty" description:"Why."`
}

// A Removed says how a file was removed.
type Removed struct {
	Who   string     `json:"who,omitempty" description:"Who removed the file, if that was done with the operation remove and is among the last 1000 entries of the audit."`
	Since *time.Time `json:"since,omitempty" description:"When the file was removed."`
}

// A Version is a kept version.
type Version struct {
	Digest string    `json:"digest" description:"The SHA-256 of the version's content. For a script, this means its own file."`
	Size   int64     `json:"size" description:"The size of the version in bytes."`
	Since  time.Time `json:"since" description:"When the version was kept, some seconds after it began to be served."`
	Served bool      `json:"served" description:"Whether the version is served."`
}

func history() Operation {
	return Looks("history", "List the versions of files that are kept", func(ctx context.Context, asked *Request, in HistoryArguments) (History, error) {
		r := files{asked}
		if !r.keeps() {
			return History{}, unkept(versions.ErrOff)
		}
		removed := r.removals(ctx)
		all := History{Files: []Versions{}}
		if in.Path != "" {
			s, err := r.named(in.Path)
			if err != nil {
				return all, err
			}
			one, err := r.versionsOf(&s, removed)
			if err != nil {
				return all, unkept(err)
			}
			r.Version = s.Content
			all.Files = append(all.Files, one)
			return all, nil
		}
		known, err := r.knownFiles()
		if err != nil {
			return all, unkept(err)
		}
		for i := range known {
			one, err := r.versionsOf(&known[i], removed)
			if err != nil {
				return all, unkept(err)
			}
			if len(one.Versions) > 1 || one.RolledBack != nil || one.Served == "" && len(one.Versions) > 0 {
				all.Files = append(all.Files, one)
			}
		}
		return all, nil
	})
}

// keeps reports whether versions of files are kept.
func (r files) keeps() bool {
	return r.Service.Versions.IsOn() || slices.ContainsFunc(r.Service.Directories(), func(d core.Directory) bool { return r.shelf(d.ID).IsOn() })
}

// knownFiles returns all files, including those of which only versions are left.
func (r files) knownFiles() ([]catalog.FileState, error) {
	all := r.Service.Catalog.Files()
	there := make(map[catalog.FileID]bool, len(all))
	for i := range all {
		there[all[i].FileID] = true
	}
	for _, d := range r.Service.Directories() {
		gone, err := r.shelf(d.ID).Files(d.ID)
		if err != nil && !errors.Is(err, versions.ErrOff) {
			return nil, err
		}
		for _, f := range gone {
			if id := (catalog.FileID{SourceID: f.Source, Name: f.Name}); !there[id] {
				all = append(all, catalog.FileState{FileID: id, Source: d.Place(f.Name)})
			}
		}
	}
	return all, nil
}

// named returns the file that the caller means, by its name, its place, or one of its tools.
func (r files) named(path string) (catalog.FileState, error) {
	all, err := r.knownFiles()
	if err != nil {
		return catalog.FileState{}, unkept(err)
	}
	var found []catalog.FileState
	var names []string
	for i := range all {
		s := &all[i]
		if s.Source == path || s.Name == path || slices.Contains(s.Paths, "/"+strings.TrimPrefix(path, "/")) {
			found = append(found, *s)
		}
		names = append(names, s.Name)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var places []string
		for _, s := range found {
			places = append(places, s.Source)
		}
		return catalog.FileState{}, invalid("Several files have this name: name one of " + strings.Join(places, ", "))
	}
	message := fmt.Sprintf("There is no file or tool %s", text.Short(path))
	if near := text.Nearest(path, names); near != "" {
		message += ": did you mean " + near + "?"
	}
	return catalog.FileState{}, &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: message}
}

// isGone reports whether only versions of a file are left.
func isGone(s *catalog.FileState) bool { return s.Stage == "" }

// removals returns who removed which files, by the place of the file, as far as the last entries of the audit show.
func (r files) removals(ctx context.Context) map[string]Removed {
	const last = 1000
	all := map[string]Removed{}
	ends, err := r.Service.Audit.Ends(ctx)
	if err != nil {
		return all // versions can be listed without it
	}
	records, _, err := r.Service.Audit.List(ctx, ends.Last-min(ends.Last, last), last)
	if err != nil {
		return all
	}
	for i := range records {
		e := &records[i]
		switch e.Action {
		case "put", "rollback": // the file has come back
			delete(all, e.Target)
		case "remove":
			who := e.Who
			if e.From != "socket" {
				who += " (" + e.Origin + ")"
			}
			if all[e.Target] = (Removed{who, &e.Time}); e.Refused != "" { // the file is still there
				delete(all, e.Target)
			}
		}
	}
	return all
}

// versionsOf returns the versions of a file.
func (r files) versionsOf(s *catalog.FileState, removed map[string]Removed) (Versions, error) {
	f := versions.File{Source: s.SourceID, Name: s.Name}
	shelf := r.shelf(s.SourceID)
	kept, err := shelf.Of(f)
	if errors.Is(err, versions.ErrOff) {
		err = nil
	}
	told := Versions{File: s.Source, Served: s.Content, Versions: []Version{}}
	for _, v := range kept {
		told.Versions = append(told.Versions, Version{v.Digest, v.Size, v.Since, v.Digest == s.Content})
	}
	if isGone(s) {
		by := removed[shelf.path(s.Name)]
		told.Removed = &by
	}
	if back, ok := shelf.RolledBack(f); ok {
		told.RolledBack = &RolledBack{back.Over, back.By, back.Since, back.Reason}
	}
	return told, err
}

// RollbackArguments are the arguments of the operation rollback.
type RollbackArguments struct {
	Path    string `json:"path" description:"A file, or a tool of it." minLength:"1" maxLength:"4096"`
	Version string `json:"version,omitempty" description:"The first digits of the version's SHA-256, at least four; by default the version before the one that is served, or the last one of a removed file." maxLength:"64"`
	Reason  string `json:"reason,omitempty" description:"Why." maxLength:"1000"`
}

// A RollingBack is the outcome of a rollback.
type RollingBack struct {
	Changed bool     `json:"changed" description:"Whether another version was served before."`
	File    string   `json:"file" description:"Where the file lies."`
	Digest  string   `json:"digest" description:"The SHA-256 of what is served now."`
	Before  string   `json:"before" description:"The SHA-256 of what was served before, or empty."`
	Source  string   `json:"source" description:"The SHA-256 of the content in the file's source. Once that changes, the new content is served."`
	Tools   []string `json:"tools" description:"The paths of the tools that can be called now."`
}

func rollback() Operation {
	return Changes("rollback", "Serve an earlier version of a file", func(ctx context.Context, asked *Request, in RollbackArguments) (RollingBack, error) {
		r := files{asked}
		end, err := r.turn(ctx, false)
		if err != nil {
			return RollingBack{}, err
		}
		defer end()
		s, err := r.named(in.Path)
		switch {
		case err != nil:
			return RollingBack{}, err
		case isGone(&s):
			return r.restore(ctx, &s, in)
		}
		// A rollback replaces what the source has now, not what was last listed.
		looking, cancel := context.WithTimeout(ctx, served)
		defer cancel()
		s, there, err := r.Service.Catalog.Await(looking, s.FileID, false)
		switch {
		case err != nil && ctx.Err() == nil || !there:
			return RollingBack{}, changing()
		case err != nil:
			return RollingBack{}, err
		}
		if err := r.Expect(s.Content); err != nil {
			return RollingBack{}, err
		}
		return r.rollBack(ctx, &s, in)
	})
}

// restore puts a version of a removed file back into its place. The caller has the turn.
func (r files) restore(ctx context.Context, s *catalog.FileState, in RollbackArguments) (RollingBack, error) {
	if err := checkReason(in.Reason); err != nil {
		return RollingBack{}, err
	}
	if !r.inForce().Admin.Upload {
		return RollingBack{}, &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: s.Source + " was removed, and is put back only if the configuration sets [admin] upload = true: set that, or put the file back by hand"}
	}
	at, err := r.spot(FileArguments{Name: s.Name, Directory: s.SourceID})
	if err != nil {
		return RollingBack{}, err
	}
	kept, err := at.Of(at.version())
	if err != nil {
		return RollingBack{}, unkept(err)
	}
	to, err := choose(kept, s, "", in.Version, false)
	if err != nil {
		return RollingBack{}, err
	}
	if back, ok := at.RolledBack(at.version()); ok && in.Version == "" { // the file was not removed by the operation remove
		to = back.Digest
	}
	content, err := at.Read(at.version(), to)
	if err != nil {
		return RollingBack{}, unkept(err)
	}
	f, err := at.begin(at.Name)
	if err != nil {
		return RollingBack{}, badFile(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return RollingBack{}, err
	}
	r.Expected = cmp.Or(r.Expected, noFile) // if somebody has put the file back meanwhile, it must not be replaced
	placed, err := r.place(ctx, at, f, in.Reason, false)
	if err == nil {
		err = r.await(ctx, at.FileID, placed.Digest, true)
	}
	return RollingBack{Changed: placed.Changed, File: s.Source, Digest: to, Source: to, Tools: placed.Tools}, err
}

// rollBack serves another version of a file. The caller has the turn.
func (r files) rollBack(ctx context.Context, s *catalog.FileState, in RollbackArguments) (RollingBack, error) {
	if err := checkReason(in.Reason); err != nil {
		return RollingBack{}, err
	}
	if v := in.Version; v != "" && (len(v) < 4 || strings.Trim(v, "0123456789abcdef") != "") {
		return RollingBack{}, invalid(fmt.Sprintf("%q is not a version: write the first digits of its SHA-256, at least four, as listed by toolsrv history", text.Short(v)))
	}
	f := versions.File{Source: s.SourceID, Name: s.Name}
	shelf := r.shelf(s.SourceID)
	over, err := shelf.source(ctx, s)
	if err != nil {
		return RollingBack{}, err
	}
	kept, err := shelf.Of(f)
	if err != nil {
		return RollingBack{}, unkept(err)
	}
	_, rolled := shelf.RolledBack(f)
	to, err := choose(kept, s, over, in.Version, rolled)
	if err != nil {
		return RollingBack{}, err
	}
	done := RollingBack{File: s.Source, Digest: to, Before: s.Content, Source: over, Changed: to != s.Content || s.Err != nil}
	if done.Changed {
		apply := func(ctx context.Context) error {
			_, err := shelf.Unroll(ctx, f)
			return err
		}
		if to != over {
			content, err := shelf.Read(f, to)
			if err != nil {
				return RollingBack{}, unkept(err)
			}
			if _, err := r.Service.Catalog.Check(ctx, s.FileID, content); err != nil {
				return RollingBack{}, refusedFile(ctx, err)
			}
			apply = func(ctx context.Context) error {
				return shelf.Roll(ctx, versions.Rollback{File: f, Over: over, Digest: to, By: r.by(), Since: time.Now().UTC().Truncate(time.Millisecond), Reason: in.Reason})
			}
		}
		if err := r.change(ctx, s.Source, digestOf(s.Content), fileDigest{to, in.Reason}, func(ctx context.Context) error { return unkept(apply(ctx)) }); err != nil {
			return RollingBack{}, err
		}
	}
	if err := r.await(ctx, s.FileID, to, done.Changed); err != nil {
		return RollingBack{}, err
	}
	if now, ok := r.file(s.FileID); ok {
		done.Tools = append([]string{}, now.Paths...)
	}
	r.Version = to
	return done, nil
}

func changing() error {
	return &wasmtools.Error{Code: wasmtools.CodeChanged, Message: "Somebody is changing the file: look at it, and try again"}
}

// choose returns the digest of the version that the caller means. rolled is whether the served version is the result of a rollback.
func choose(kept []versions.Version, s *catalog.FileState, over, version string, rolled bool) (string, error) {
	if version == "" {
		at := slices.IndexFunc(kept, func(v versions.Version) bool { return v.Digest == s.Content })
		if s.Err != nil && s.Content != "" { // the newest version is not served at all, so the served one is the one before
			return s.Content, nil
		}
		if at > 0 && !rolled { // the source has just come back to the served version, and that is not recorded yet
			at = -1
		}
		if at+1 < len(kept) {
			return kept[at+1].Digest, nil
		}
		return "", &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "No earlier version of " + s.Source + " is kept"}
	}
	found := map[string]bool{}
	for _, v := range kept {
		found[v.Digest] = strings.HasPrefix(v.Digest, version)
	}
	found[over] = strings.HasPrefix(over, version)
	var one string
	for digest, ok := range found {
		if !ok {
			continue
		}
		if one != "" {
			return "", invalid("Several versions begin with " + version + ": give more of the digest")
		}
		one = digest
	}
	if one == "" {
		return "", &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: fmt.Sprintf("No version %s of %s is kept: toolsrv history lists them", version, s.Source)}
	}
	return one, nil
}

// unkept returns the caller's error if versions can't be read or stored.
func unkept(err error) error {
	code := wasmtools.CodeNotReady
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, state.ErrConflict):
		return changing()
	case errors.Is(err, versions.ErrUnknown), errors.Is(err, versions.ErrDamaged):
		code = wasmtools.CodeNotFound
	case errors.Is(err, state.ErrTooLarge):
		code = wasmtools.CodeInvalidArguments
	}
	return &wasmtools.Error{Code: code, Message: text.Clip(err.Error(), 1000), Err: err}
}
