package admin

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/brought"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// CallersArguments are the arguments of the operation secrets list.
type CallersArguments struct {
	Principal string `json:"principal,omitempty" description:"Show only this caller's secrets, such as issued+ann." maxLength:"200"`
}

// NewSecret are the arguments of the operation secrets set.
type NewSecret struct {
	Name      string `json:"name" description:"The secret's name, as written before @principal in grants: at most 64 of the characters A-Z a-z 0-9 . _ -" maxLength:"64"`
	Value     string `json:"value" description:"The secret: 16 bytes to 4 KiB, including letters and digits, without blanks." maxLength:"4096"`
	Principal string `json:"principal,omitempty" description:"The caller that the secret is for, such as issued+ann, if an operator sets it. By default, whoever makes the request." maxLength:"200"`
}

// OwnSecretName are the arguments of the operation secrets remove.
type OwnSecretName struct {
	Name      string `json:"name" description:"The secret's name." maxLength:"64"`
	Principal string `json:"principal,omitempty" description:"The caller that the secret belongs to, such as issued+ann, if an operator removes it. By default, whoever makes the request." maxLength:"200"`
}

// An OwnSecret describes a caller's own secret. Its value is never shown.
type OwnSecret struct {
	Principal string     `json:"principal" description:"The caller that the secret belongs to, such as issued+ann."`
	Name      string     `json:"name" description:"The secret's name, as written before @principal in grants."`
	Source    string     `json:"source" enum:"directory,state" description:"Where the secret is kept: in secrets.directory, where the operator has put it, or in the state."`
	Set       *time.Time `json:"set,omitempty" description:"When the secret was set; missing for one in the directory."`
	By        string     `json:"by,omitempty" description:"Who set the secret."`
	Version   string     `json:"version,omitempty" description:"The secret's version, for If-Match."`
}

// OwnSecrets are callers' own secrets.
type OwnSecrets struct {
	Principal string      `json:"principal,omitempty" description:"The name under which whoever makes the request keeps secrets; missing if they can't keep any."`
	Secrets   []OwnSecret `json:"secrets" description:"The secrets: of all callers for an operator, and otherwise the caller's own."`
	Wanted    []Wanted    `json:"wanted" description:"The secrets of their own, by name, that whoever makes the request needs for the tools that they may call; empty if they can't keep any."`
}

// A Wanted is a secret that tools use and that each caller must set for itself.
type Wanted struct {
	Name  string   `json:"name" description:"The secret's name."`
	Tools []string `json:"tools" description:"The paths of tools that use the secret, at most 100 of them."`
}

// An OwnSecretChanged is a caller's own secret after a change.
type OwnSecretChanged struct {
	Secret   OwnSecret `json:"secret" description:"The secret as it is now, or was before it was removed."`
	Warnings []string  `json:"warnings,omitempty" description:"What may not be intended."`
}

// secretOperations are the operations on callers' own secrets. Each caller may set its own.
func secretOperations() []Operation {
	list := Looks("secrets list", "List callers' own secrets, without their values", func(_ context.Context, r *Request, in CallersArguments) (OwnSecrets, error) {
		return ownSecretsOf(r, in)
	})
	set := Changes("secrets set", "Set a caller's own secret", func(ctx context.Context, r *Request, in NewSecret) (OwnSecretChanged, error) {
		return setSecret(ctx, r, in)
	})
	remove := Changes("secrets remove", "Remove a caller's own secret", func(ctx context.Context, r *Request, in OwnSecretName) (OwnSecretChanged, error) {
		return removeSecret(ctx, r, in)
	})
	list.Role, set.Role, remove.Role = "", "", ""
	set.secret, remove.secret = true, true
	return []Operation{list, set, remove}
}

// ownerOf returns whose secrets the request is about, and who is responsible for that caller. Without a principal in the arguments it is the caller
// itself. Only an administrator may name somebody else.
func ownerOf(r *Request, principal, role string) (id, root personal.ID, err error) {
	if principal == "" && !r.Local {
		id, err := personal.Of(r.Principal)
		if err != nil {
			return "", "", invalid("This token has no name, so its caller can't have secrets: ask for one that `toolsrv tokens add` makes, or that [[auth.token]] declares")
		}
		root, err := personal.Root(r.Principal)
		return id, root, err
	}
	if !r.Principal.Has(role) {
		return "", "", &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: "Only an administrator can ask for another caller's secrets"}
	}
	if principal == "" {
		return "", "", invalid("Name the caller whose secret it is with principal (--principal), such as issued+ann: " + principalHelp)
	}
	if id, err = personal.Parse(principal); err != nil {
		return "", "", invalid("The principal is not valid: " + err.Error() + "; " + principalHelp)
	}
	return id, id, nil
}

// principalHelp says how a caller learns its ID.
const principalHelp = "`toolsrv self` shows each caller how theirs is written"

func ownSecretsOf(r *Request, in CallersArguments) (all OwnSecrets, err error) {
	var only personal.ID
	if in.Principal != "" || !r.Principal.Has(wasmtools.RoleAdminRead) {
		if only, _, err = ownerOf(r, in.Principal, wasmtools.RoleAdminRead); err != nil {
			return all, err
		}
	}
	all.Secrets = []OwnSecret{}
	if !r.Local {
		own, _ := personal.Of(r.Principal)
		all.Principal = string(own)
	}
	all.Wanted = []Wanted{}
	if all.Principal != "" {
		all.Wanted = wantedOf(r)
	}
	for id, names := range r.inForce().Granted.Secrets().Callers() {
		for _, name := range names {
			if only == "" || only == id {
				all.Secrets = append(all.Secrets, OwnSecret{Principal: string(id), Name: name, Source: "directory"})
			}
		}
	}
	kept, err := r.Service.Brought.List()
	if err != nil {
		return all, secretError(err)
	}
	for _, one := range kept {
		if only == "" || only == one.Of {
			all.Secrets = append(all.Secrets, ownSecretOf(one))
		}
	}
	slices.SortStableFunc(all.Secrets, func(a, b OwnSecret) int {
		return cmp.Or(strings.Compare(a.Principal, b.Principal), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// expectedSecret returns the version in If-Match.
func expectedSecret(r *Request) (int64, error) {
	if r.Expected == "" {
		return state.Any, nil
	}
	expect, err := strconv.ParseInt(r.Expected, 10, 64)
	if err != nil || expect < 1 {
		return 0, &wasmtools.Error{Code: wasmtools.CodeChanged, Message: "No secret has the expected version"}
	}
	return expect, nil
}

func setSecret(ctx context.Context, r *Request, in NewSecret) (changed OwnSecretChanged, err error) {
	id, root, err := ownerOf(r, in.Principal, wasmtools.RoleAdmin)
	if err != nil {
		return changed, err
	}
	if err := secret.CheckName(in.Name); err != nil {
		return changed, invalid(err.Error())
	}
	expect, err := expectedSecret(r)
	if err != nil {
		return changed, err
	}
	if r.inForce().Granted.Secrets().Given(in.Name, id) {
		return changed, invalid("The operator has given this caller a secret of that name, in secrets.directory: it can be changed only there")
	}
	now, err := r.Service.Brought.Set(ctx, id, root, in.Name, in.Value, r.by(), expect, keepingOf(r, id, in.Name))
	if err != nil {
		return changed, secretError(err)
	}
	changed.Secret = ownSecretOf(now)
	r.Version = changed.Secret.Version
	if !isUsed(r, in.Name, in.Principal == "") {
		changed.Warnings = append(changed.Warnings, "no tool that the caller may call was granted ${secret:"+in.Name+"@principal}, so nothing uses it yet")
	}
	return changed, nil
}

func removeSecret(ctx context.Context, r *Request, in OwnSecretName) (changed OwnSecretChanged, err error) {
	id, _, err := ownerOf(r, in.Principal, wasmtools.RoleAdmin)
	if err != nil {
		return changed, err
	}
	expect, err := expectedSecret(r)
	if err != nil {
		return changed, err
	}
	was, ok, err := r.Service.Brought.Remove(ctx, id, in.Name, expect, keepingOf(r, id, in.Name))
	switch {
	case err != nil:
		return changed, secretError(err)
	case !ok:
		return changed, &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "The caller has set no secret of that name: `toolsrv secrets list` lists them all"}
	}
	changed.Secret = ownSecretOf(was)
	return changed, nil
}

// keepingOf stores the audit entry for a change of a secret. The entry does not contain the value.
func keepingOf(r *Request, id personal.ID, name string) brought.Keeping {
	return func(ctx context.Context, change func(ctx context.Context) error) error {
		return r.change(ctx, string(id)+" "+name, nil, nil, change)
	}
}

// isUsed reports whether a tool puts each caller's own secret with this name into requests. If own is true, it looks only at the tools that the
// caller may call, since others don't exist for the caller.
func isUsed(r *Request, name string, own bool) bool {
	for used := range uses(r, own) {
		if used == name {
			return true
		}
	}
	return false
}

// wantedOf returns which secrets of its own the caller needs for the tools that it may call.
func wantedOf(r *Request) []Wanted {
	const most = 100
	all := []Wanted{}
	for name, path := range uses(r, true) {
		at, known := slices.BinarySearchFunc(all, name, func(w Wanted, name string) int { return strings.Compare(w.Name, name) })
		if !known {
			all = slices.Insert(all, at, Wanted{Name: name, Tools: []string{}})
		}
		if tools := all[at].Tools; len(tools) < most && !slices.Contains(tools, path) { // the tool may put it into several requests
			all[at].Tools = append(tools, path)
		}
	}
	return all
}

// uses yields the names of callers' own secrets that tools put into requests, with the tools' paths. own is as for isUsed.
func uses(r *Request, own bool) iter.Seq2[string, string] {
	return func(yield func(name, path string) bool) {
		granted := r.inForce().Granted
		for _, route := range r.generation().Routes() {
			if _, sends := route.Tool.Needs["http"]; !sends || own && !r.Principal.May(route.Path) {
				continue
			}
			for _, reached := range granted.Reaches(route.Path, route.Tool.Needs) {
				name, each := strings.CutSuffix(reached.Entry, secret.OfPrincipal)
				if each && reached.Capability == "secrets" && !yield(name, route.Path) {
					return
				}
			}
		}
	}
}

func ownSecretOf(s brought.Secret) OwnSecret {
	return OwnSecret{Principal: string(s.Of), Name: s.Name, Source: "state", Set: moment(s.Set), By: s.By, Version: strconv.FormatUint(s.Version, 10)}
}

// secretError returns the caller's error for an error. An error that is already meant for callers is returned unchanged.
func secretError(err error) error {
	if e, ok := errors.AsType[*wasmtools.Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, state.ErrConflict):
		return &wasmtools.Error{Code: wasmtools.CodeChanged, Message: "Somebody else has changed the secret: " + err.Error()}
	case errors.Is(err, secret.ErrUnfit), errors.Is(err, secret.ErrTooMany):
		return invalid("Nothing was changed: " + err.Error())
	case errors.Is(err, brought.ErrNowhere), errors.Is(err, state.ErrUnavailable), errors.Is(err, state.ErrQuota):
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Nothing was changed: " + err.Error(), Err: err}
	}
	return err
}
