package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// change changes a target after storing the entry in the audit. Every operation that changes something must use it. before and after describe the
// target before and after the change, small and without secrets, or are nil.
func (r *Request) change(ctx context.Context, target string, before, after any, do func(ctx context.Context) error) error {
	e := r.entry(target)
	for to, v := range map[*json.RawMessage]any{&e.Before: before, &e.After: after} {
		if v == nil {
			continue
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("write the audit: %w", err)
		}
		*to = encoded
	}
	return notKept(r.Service.Audit.Change(ctx, e, do))
}

// notKept returns the caller's error for a change that was not made because its audit entry can't be stored.
func notKept(err error) error {
	if errors.Is(err, audit.ErrNotKept) {
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Nothing was changed: " + err.Error(), Err: err}
	}
	return err
}

// by returns the caller's name for the audit. An issuer may give names that look like the server's own, such as "uid 0 (root)", or like a token's, so
// the name is followed by how the caller was identified.
func (r *Request) by() string {
	p := r.Principal
	if r.Local || p.Realm() == "" && !strings.Contains(p.String(), " ") {
		return p.String()
	}
	return p.String() + " (" + p.Origin() + ")"
}

// entry returns the audit entry for the request's operation on a target.
func (r *Request) entry(target string) audit.Entry {
	return audit.Entry{Action: strings.ReplaceAll(r.Operation, " ", "."), Who: r.Principal.String(), Origin: r.Principal.Origin(), Caller: string(personal.Apart(r.Principal)), From: r.From, Target: target, RequestID: r.ID}
}

// AuditArguments are the arguments of the operation audit.
type AuditArguments struct {
	After int `json:"after,omitempty" description:"List entries with higher numbers only." minimum:"0"`
	Last  int `json:"last,omitempty" description:"List only this many of the last entries." minimum:"0"`
	Limit int `json:"limit,omitempty" description:"How many entries to list at most; 0 means 1000." minimum:"0" maximum:"1000"`
}

// An Audit is a list of entries of the audit.
type Audit struct {
	Entries []audit.Record `json:"entries" description:"The entries, the oldest first."`
	More    bool           `json:"more" description:"Whether there are more entries after these."`
	audit.Ends
}

// auditOf lists entries.
func auditOf() Operation {
	return Looks("audit", "List who changed what, and who tried to", func(ctx context.Context, r *Request, in AuditArguments) (a Audit, err error) {
		if a.Ends, err = r.Service.Audit.Ends(ctx); err != nil {
			return a, unreadable(err)
		}
		after := uint64(in.After)
		if n := uint64(in.Last); n > 0 && a.Last > n {
			after = max(after, a.Last-n)
		}
		a.Entries, a.More, err = r.Service.Audit.List(ctx, after, in.Limit)
		if a.Entries == nil {
			a.Entries = []audit.Record{}
		}
		return a, unreadable(err)
	})
}

// unreadable returns the caller's error if the audit can't be read.
func unreadable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: text.Clip(err.Error(), 1000), Err: err}
}

// VerifyArguments are the arguments of the operation audit verify.
type VerifyArguments struct {
	Known []string `json:"known,omitempty" description:"Entries whose hashes are known from elsewhere, such as the log, each as NUMBER:HASH." maxItems:"1000"`
}

// A Verified is the result of verifying the audit.
type Verified struct {
	OK      bool   `json:"ok" description:"Whether all entries are unaltered."`
	Problem string `json:"problem,omitempty" description:"If not, where the first problem is, and what it is."`
	audit.Ends
}

func auditVerify() Operation {
	return Looks("audit verify", "Check that nobody has altered the audit", func(ctx context.Context, r *Request, in VerifyArguments) (v Verified, err error) {
		known := map[uint64]string{}
		for _, one := range in.Known {
			number, hash, _ := strings.Cut(one, ":")
			n, err := strconv.ParseUint(number, 10, 62)
			if err != nil || len(hash) != 2*len(audit.Hash{}) {
				return v, invalid(fmt.Sprintf("%q is not NUMBER:HASH, with a hash of %d hexadecimal digits", text.Short(one), 2*len(audit.Hash{})))
			}
			known[n] = strings.ToLower(hash)
		}
		v.Ends, err = r.Service.Audit.Verify(ctx, known)
		if broken, ok := errors.AsType[*audit.BrokenError](err); ok {
			v.Problem = broken.Error()
			return v, nil
		}
		if errors.Is(err, audit.ErrDropped) {
			return v, invalid(sentence(err))
		}
		v.OK = err == nil
		return v, unreadable(err)
	})
}
