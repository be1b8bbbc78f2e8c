package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// FileArguments are the arguments of the operations put and remove.
type FileArguments struct {
	Name      string `json:"name" description:"The file's name in its directory, such as math/add.wasm or math/add.py." minLength:"1" maxLength:"512"`
	Directory string `json:"directory,omitempty" description:"The directory: the name of its source, or what the configuration calls it, or an absolute path. Needed if there are several." maxLength:"4096"`
	DryRun    bool   `json:"dry_run,omitempty" description:"Whether to only show what would change."`
}

// A Placed is what happened, or would happen, to a file that is put or removed.
type Placed struct {
	DryRun    bool     `json:"dry_run" description:"Whether nothing was changed. The ETag is then the current file's: with it in If-Match, exactly the change shown here is made, or none."`
	Changed   bool     `json:"changed" description:"Whether there is a difference: false if the file is already like this, or already gone."`
	File      string   `json:"file" description:"Where the file lies."`
	Digest    string   `json:"digest,omitempty" description:"The SHA-256 of the file as it is now."`
	Before    string   `json:"before,omitempty" description:"The SHA-256 of the file that was there before."`
	Tools     []string `json:"tools" description:"The paths of its tools: those that can be called now, or that are gone."`
	Gone      []string `json:"gone" description:"The paths of tools that the file had before it was replaced, and no longer has."`
	Ungranted []string `json:"ungranted" description:"What its tools need but were not granted, by tool."`
	Warnings  []string `json:"warnings" description:"What causes clients trouble, in the words of toolsrv check."`
}

const (
	// served is how long to wait until a change of a file is served.
	served = 30 * time.Second
	// noFile is the version of a file that does not exist, for If-Match.
	noFile = "none"
)

// files are the files of the request's server.
type files struct{ *Request }

func put() Operation {
	return Takes("put", "Put a module or a script into a tools directory or a bucket", sandbox.MaxModule, func(ctx context.Context, asked *Request, in FileArguments) (Placed, error) {
		r := files{asked}
		at, err := r.spot(in)
		if err != nil {
			return Placed{}, err
		}
		leave, err := r.uploads.enter(r.Request)
		if err != nil {
			return Placed{}, err
		}
		defer leave()
		f, err := at.begin(at.Name)
		if err != nil {
			return Placed{}, badFile(err)
		}
		defer f.Close()
		if err := r.Body(f); err != nil {
			return Placed{}, err
		}
		end, err := r.turn(ctx, true)
		if err != nil {
			return Placed{}, err
		}
		defer end()
		done, err := r.place(ctx, at, f, "", in.DryRun)
		if err != nil || in.DryRun {
			return done, err
		}
		end() // ends the turn early, so that others need not wait until the file is served
		return done, r.await(ctx, at.FileID, done.Digest, true)
	})
}

// turn waits until nobody else is changing a file. Since that may take as long as receiving a body, it then checks again that the caller is still
// allowed to. puts is whether the turn is for an upload.
func (r files) turn(ctx context.Context, puts bool) (end func(), err error) {
	if end, err = r.uploads.change(ctx, r.Request); err != nil {
		return nil, err
	}
	if r.Still != nil {
		err = r.Still()
	}
	if err == nil && puts {
		err = r.mayPut()
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// mayPut returns an error if putting and removing files is not allowed.
func (r files) mayPut() error {
	if r.inForce().Admin.Upload {
		return nil
	}
	return &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: "Files can't be put or removed: the configuration does not set [admin] upload = true"}
}

// place checks an uploaded file, and puts it into its place. A dry run ends with the check. The caller has the turn.
func (r files) place(ctx context.Context, at *spot, f incoming, reason string, dryRun bool) (Placed, error) {
	was, err := r.lying(at)
	if err != nil {
		return Placed{}, err
	}
	before := was.digest
	defer r.Service.Engine.Claim(min(f.Size()+int64(len(was.content)), r.Service.Engine.Memory()/2))() // the check counts its own memory
	content, err := f.Content()
	if err != nil {
		return Placed{}, err
	}
	checked, err := r.Service.Catalog.Check(ctx, at.FileID, content)
	if err != nil {
		return Placed{}, refusedFile(ctx, err)
	}
	_, rolled := at.RolledBack(at.version())
	changed := f.Digest() != before || rolled
	if !changed {
		if changed, err = r.lost(ctx, at, f); err != nil {
			return Placed{}, err
		}
	}
	done := Placed{DryRun: dryRun, Changed: changed, File: at.path(at.Name), Digest: f.Digest(), Before: before,
		Tools: checked.Paths, Gone: r.without(at.FileID, checked.Paths), Ungranted: checked.Ungranted, Warnings: []string{}}
	for _, w := range checked.Findings {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%s: %s: %s (%s)", w.Tool, w.Place, w.Message, w.Rule))
	}
	if dryRun {
		r.Version = cmp.Or(before, noFile)
		return done, nil
	}
	if done.Changed {
		r.keepOld(at, was)
		err = r.change(ctx, done.File, digestOf(before), fileDigest{done.Digest, reason}, func(ctx context.Context) error { return at.put(ctx, at.Name, f, was, done.Tools) })
		if err != nil {
			return Placed{}, err
		}
	}
	r.Version = done.Digest
	return done, nil
}

func remove() Operation {
	return Changes("remove", "Remove a module or a script from a tools directory or a bucket", func(ctx context.Context, asked *Request, in FileArguments) (Placed, error) {
		r := files{asked}
		at, err := r.spot(in)
		if err != nil {
			return Placed{}, err
		}
		end, err := r.turn(ctx, true)
		if err != nil {
			return Placed{}, err
		}
		defer end()
		was, err := r.lying(at)
		if err != nil {
			return Placed{}, err
		}
		before := was.digest
		if before == "" {
			return Placed{}, &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "There is no file " + at.place}
		}
		done := Placed{DryRun: in.DryRun, Changed: true, File: at.path(at.Name), Before: before,
			Tools: r.without(at.FileID, nil), Gone: []string{}, Ungranted: []string{}, Warnings: []string{}}
		if in.DryRun {
			r.Version = before
			return done, nil
		}
		r.keepOld(at, was)
		err = r.change(ctx, done.File, digestOf(before), nil, func(ctx context.Context) error { return at.remove(ctx, at.Name, was) })
		if err != nil {
			return Placed{}, err
		}
		end() // ends the turn early, so that others need not wait until the change is visible
		return done, r.await(ctx, at.FileID, "", false)
	})
}

// spot returns where a file is to be put or removed, if that is allowed.
func (r files) spot(in FileArguments) (*spot, error) {
	if err := r.mayPut(); err != nil {
		return nil, err
	}
	d, err := r.directory(in)
	if err != nil {
		return nil, err
	}
	at := &spot{r.shelf(d.ID), catalog.FileID{SourceID: d.ID, Name: in.Name}, d.Place(in.Name)}
	if err := at.CheckName(in.Name); err != nil {
		return nil, badFile(err)
	}
	return at, nil
}

// directory returns the directory that the arguments name.
func (r files) directory(in FileArguments) (core.Directory, error) {
	all := r.Service.Directories()
	var paths []string
	for _, d := range all {
		if in.Directory == d.Path || in.Directory == d.ID || in.Directory != "" && in.Directory == d.Name || in.Directory != "" && filepath.Clean(in.Directory) == filepath.Clean(d.Path) {
			return d, nil
		}
		paths = append(paths, cmp.Or(d.Name, d.Path))
	}
	switch {
	case len(all) == 0:
		return core.Directory{}, invalid("The server serves no directory that files can be put into")
	case slices.ContainsFunc(configured.Sources(r.inForce().Config), func(s config.Source) bool {
		return s.OCI != "" && in.Directory != "" && (in.Directory == s.Name || in.Directory == s.OCI)
	}):
		return core.Directory{}, invalid(fmt.Sprintf("%s is served from a registry, where files can't be put: use toolsrv push, or name one of %s", text.Short(in.Directory), strings.Join(paths, ", ")))
	case in.Directory != "":
		return core.Directory{}, invalid(fmt.Sprintf("%s is not served: name one of %s", text.Short(in.Directory), strings.Join(paths, ", ")))
	case len(all) > 1:
		return core.Directory{}, invalid("Several directories are served: name one of " + strings.Join(paths, ", "))
	}
	return all[0], nil
}

// lying returns the present file at a spot, if its version is the one that the caller expects.
func (r files) lying(at *spot) (lying, error) {
	was, err := at.lying(at.Name)
	if err != nil {
		return was, err
	}
	return was, r.Expect(cmp.Or(was.digest, noFile))
}

// lost reports whether the stored content of a file is missing or damaged, so that the same content must be put again. That this server has it in its
// cache does not matter, since other servers may need it.
func (r files) lost(ctx context.Context, at *spot, f incoming) (bool, error) {
	if s, ok := r.file(at.FileID); ok && s.Err != nil && at.loses() {
		return true, nil
	}
	there, err := at.holds(ctx, f)
	return !there, err
}

// keepOld stores the content of a file as a version before the file is replaced, if that content is served.
func (r files) keepOld(at *spot, was lying) {
	s, ok := r.file(at.FileID)
	if !ok || was.digest == "" || s.Content != was.digest || !at.IsOn() {
		return
	}
	if err := at.keep(at.Name, was); err != nil {
		r.Service.Logger.Warn("a version of a file is not kept", "file", at.Name, "error", err)
	}
}

// file returns the state of a file.
func (r files) file(id catalog.FileID) (s catalog.FileState, ok bool) {
	all := r.Service.Catalog.Files()
	i := slices.IndexFunc(all, func(s catalog.FileState) bool { return s.FileID == id })
	if i < 0 {
		return s, false
	}
	return all[i], true
}

// without returns the paths of the tools served from a file, except those in a list.
func (r files) without(id catalog.FileID, some []string) []string {
	s, _ := r.file(id)
	return slices.DeleteFunc(append([]string{}, s.Paths...), func(path string) bool { return slices.Contains(some, path) })
}

// await waits until a file is served with a digest or, if the digest is empty, is gone. It returns why that has not happened.
func (r files) await(ctx context.Context, id catalog.FileID, digest string, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, served)
	defer cancel()
	s, ok, err := r.Service.Catalog.Await(ctx, id, again)
	var why string
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("it is still not served after %v: look with toolsrv status", served)
	case err != nil:
		return err
	case digest == "" && !ok, ok && s.Err == nil && s.Content == digest:
		return nil
	case !ok:
		why = "files in this place are not loaded"
	case s.Err != nil:
		why = s.Err.Error()
	default:
		return &wasmtools.Error{Code: wasmtools.CodeChanged, Message: "Somebody else changed the file at the same time: look at it, and try again"}
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "The change is made, but " + text.Clip(why, 1000)}
}

// badFile returns the caller's error for a file that can't be put or removed.
func badFile(err error) error {
	if err == nil {
		return nil
	}
	if of := stateError(err); of != nil {
		return of
	}
	code := wasmtools.CodeInvalidArguments
	if errors.Is(err, fs.ErrNotExist) {
		code = wasmtools.CodeNotFound
	}
	return &wasmtools.Error{Code: code, Message: text.Clip(err.Error(), 1000), Err: err}
}

// refusedFile returns the error for a file that would not be served.
func refusedFile(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return invalid("The file would be refused: " + text.Clip(err.Error(), 1000))
}

// A fileDigest is what the audit records of a file, with the reason for a change if one was given.
type fileDigest struct {
	Digest string `json:"digest"`
	Reason string `json:"reason,omitempty"`
}

func digestOf(digest string) any {
	if digest == "" {
		return nil
	}
	return fileDigest{Digest: digest}
}
