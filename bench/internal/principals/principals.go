// Package principals makes states with many tokens.
package principals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/tokens"
)

// Fill makes a state in a directory with n tokens for the namespace bench, no two of which have the same scopes, and returns the secret of one.
func Fill(ctx context.Context, directory string, n int) (secret string, err error) {
	store, err := local.Open(directory, local.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	made := tokens.Open(store, tokens.Options{})
	secret, _, err = made.Add(ctx, tokens.Spec{Name: "team", Scopes: []string{"bench/*", "of-0/*"}})
	if err = errors.Join(err, made.Close()); err != nil {
		return "", err
	}
	space := store.Space(tokens.Space)
	e, _, err := space.Get(ctx, "name/team", state.MaxValue)
	if err != nil {
		return "", err
	}
	var record map[string]any
	form := e.Value[0]
	if err := json.Unmarshal(e.Value[1:], &record); err != nil {
		return "", err
	}
	// The other tokens are copies of the first one's record, written all at once: making each through an operator would take two writes to the disk.
	errs := make([]error, 64)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for at := 1 + i; at < n && errs[i] == nil; at += len(errs) {
				other := maps.Clone(record)
				other["id"], other["sha256"], other["scopes"] = fmt.Sprintf("%010d", at), fmt.Sprintf("%064x", at), []string{"bench/*", fmt.Sprintf("of-%d/*", at)}
				value, err := state.Encode(form, other)
				if err == nil {
					_, err = space.Set(ctx, fmt.Sprintf("name/team-%d", at), value, state.Absent, state.SetOptions{})
				}
				errs[i] = err
			}
		})
	}
	all.Wait()
	return secret, errors.Join(errs...)
}
