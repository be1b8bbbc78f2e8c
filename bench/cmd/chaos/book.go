package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/audit"
)

// A book has the confirmed changes. Each must be in the audit, which must be complete and the same on all servers.
type book struct {
	*world
	mu      sync.Mutex
	entries []booked
	read    uint64 // the number of the last entry that was checked
}

// A booked is a confirmed change: its action, and a text that its entry must contain.
type booked struct{ action, word string }

func (*book) name() string { return "changes confirmed, entries of the audit" }

// load implements trial. It does nothing, because others make the changes.
func (*book) load(context.Context, fault, *ledger) {}

// confirm records a confirmed change.
func (b *book) confirm(operation, word string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, booked{strings.ReplaceAll(operation, " ", "."), word})
}

// verify implements trial.
func (b *book) verify(ctx context.Context) (sum string, wrong []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := map[string][]string{} // the texts of entries by action
	read := b.read
	for more := true; more; {
		var page admin.Audit
		answer, err := b.replicas[0].admin().Do(ctx, "audit", admin.AuditArguments{After: int(read)}, "")
		if err == nil {
			err = answer.Into(&page)
		}
		if err != nil {
			return "", append(wrong, fmt.Sprintf("the audit can't be read: %v", err))
		}
		for _, e := range page.Entries {
			if e.Refused == "" {
				said[e.Action] = append(said[e.Action], text(e))
			}
			read = e.Number
		}
		more = page.More
	}
	for _, change := range b.entries {
		at := -1
		for i, one := range said[change.action] {
			if strings.Contains(one, change.word) {
				at = i
				break
			}
		}
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s was confirmed, and is not in the audit", change.action, change.word))
			continue
		}
		said[change.action][at] = "" // each change has its own entry
	}
	sum = fmt.Sprintf("%d, %d", len(b.entries), read-b.read)
	b.entries, b.read = nil, read
	hash := ""
	for _, r := range b.replicas {
		var v admin.Verified
		answer, err := r.admin().Do(ctx, "audit verify", admin.VerifyArguments{}, "")
		if err == nil {
			err = answer.Into(&v)
		}
		switch {
		case err != nil || !v.OK:
			wrong = append(wrong, fmt.Sprintf("%s: the audit is not whole: %s %v", r.name, v.Problem, err))
		case hash != "" && v.Hash != hash:
			wrong = append(wrong, fmt.Sprintf("%s: the audit ends with %s, and that of others with %s", r.name, v.Hash, hash))
		}
		hash = v.Hash
	}
	return sum, wrong
}

func text(e audit.Record) string { return fmt.Sprintf("%s %s %s", e.Target, e.Before, e.After) }
