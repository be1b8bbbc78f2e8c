package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
)

// An operator changes tokens and a switch, each time at a different server, and remembers what was confirmed.
type operator struct {
	mu      sync.Mutex
	number  int
	made    map[string]string // tokens that must exist, with their secrets
	revoked map[string]string // tokens that must no longer be accepted
	unsure  map[string]bool   // the names of tokens that may have been made or revoked
	on      bool              // the required state of the switch
	doubt   bool              // the switch may be in the other state
	changed int
	refused int
	why     map[string]int // why changes were refused, without their numbers
	book    *book
}

// changeEvery is how long the operator waits after each change.
const changeEvery = 150 * time.Millisecond

// operate makes changes until ctx ends.
func (o *operator) operate(ctx context.Context, at []*replica) {
	for ctx.Err() == nil {
		o.change(ctx, at[rand.IntN(len(at))])
		select {
		case <-ctx.Done():
		case <-time.After(changeEvery):
		}
	}
}

// change makes one change at a server.
func (o *operator) change(ctx context.Context, at *replica) {
	over := at.admin()
	if over == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	o.mu.Lock()
	o.number++
	n := o.number
	o.mu.Unlock()
	switch {
	case n%3 == 0:
		o.flip(ctx, over, n%2 == 0)
	case n%3 == 1:
		o.add(ctx, over, fmt.Sprintf("t%d", n))
	default:
		o.revoke(ctx, over)
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// done counts a change.
func (o *operator) done(err error) {
	if err == nil {
		o.changed++
	} else {
		o.refused++
		o.count(err)
	}
}

// because counts why something was refused.
func (o *operator) because(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(err)
}

func (o *operator) count(err error) { o.why[digits.ReplaceAllString(err.Error(), "#")]++ }

func (o *operator) flip(ctx context.Context, over *client.Client, on bool) {
	operation := "disable"
	if on {
		operation = "enable"
	}
	_, err := over.Do(ctx, operation, admin.Switched{Names: []string{"chaos/switched"}}, "")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done(err)
	if err != nil {
		o.doubt = true // the switch may have been changed, or will be
		return
	}
	o.on, o.doubt = on, false
}

func (o *operator) add(ctx context.Context, over *client.Client, name string) {
	answer, err := over.Do(ctx, "tokens add", admin.NewToken{Name: name, Scopes: []string{"chaos/*"}}, "")
	var made admin.TokenMade
	if err == nil {
		err = answer.Into(&made)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done(err)
	if err != nil {
		o.unsure[name] = true
		return
	}
	o.made[name] = made.Secret
	o.book.confirm("tokens add", name)
}

func (o *operator) revoke(ctx context.Context, over *client.Client) {
	o.mu.Lock()
	name := ""
	for one := range o.made {
		if len(o.made) > 10 { // so that there are some tokens
			name = one
			break
		}
	}
	secret := o.made[name]
	delete(o.made, name)
	o.mu.Unlock()
	if name == "" {
		return
	}
	_, err := over.Do(ctx, "tokens revoke", admin.TokenName{Name: name}, "")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done(err)
	if err != nil {
		o.unsure[name] = true
		return
	}
	o.revoked[name] = secret
	o.book.confirm("tokens revoke", name)
}

// compare returns how a server differs from what was confirmed. The operator must make no changes meanwhile.
func (o *operator) compare(ctx context.Context, over *client.Client) (wrong []string) {
	var listed admin.Tokens
	answer, err := over.Do(ctx, "tokens list", struct{}{}, "")
	if err == nil {
		err = answer.Into(&listed)
	}
	if err != nil {
		return []string{fmt.Sprintf("its tokens can't be listed: %v", err)}
	}
	var names []string
	for _, t := range listed.Tokens {
		names = append(names, t.Name)
	}
	for name := range o.made {
		if !slices.Contains(names, name) {
			wrong = append(wrong, "it has forgotten the token "+name)
		}
	}
	for name := range o.revoked {
		if slices.Contains(names, name) {
			wrong = append(wrong, "it has the token again that was revoked: "+name)
		}
	}
	return wrong
}
