package capability

import (
	"context"
	"time"

	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/state"
)

// Secrets are the secrets of one configuration, for functions that use them out of sight of tools. What such a function answers, or says in
// an error, must not contain them: see [Secrets.Without]. They are safe for concurrent use.
type Secrets secret.View

// Has reports whether there is a secret with that name.
func (s *Secrets) Has(name string) bool { return (*secret.View)(s).Has(name) }

// Value returns a secret. Calls that began under another configuration get that configuration's values. The error says which secret is missing.
func (s *Secrets) Value(name string) (string, error) { return (*secret.View)(s).Secret(name) }

// Without returns b without the secrets with the given names, or b itself if it contains none of them. It finds
// former values of these secrets, too.
func (s *Secrets) Without(b []byte, names ...string) []byte {
	return (*secret.View)(s).Redactor(secret.NamesOf(names...)).Bytes(b)
}

// A Store is where a capability keeps values that outlive a call and the process, apart from the values of all other capabilities. How
// much it keeps, and for which tools, is up to the capability. A key has 1 KiB at most, and a value 1 MiB. The methods may wait for the disk: a host
// function calls them in f of [github.com/toolsrv/toolsrv/runtime/hostabi.Call.Wait]. It is safe for concurrent use.
type Store state.Keep

// Get returns the value of a key, which belongs to the caller, and false if there is none.
func (s *Store) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	entry, ok, err := (*state.Keep)(s).Space().Get(ctx, key, state.MaxValue)
	return entry.Value, ok, err
}

// Set keeps a value for as long as ttl says; 0 means forever. A write that has returned without an error is durable.
func (s *Store) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	_, err := (*state.Keep)(s).Space().Set(ctx, key, value, state.Any, state.SetOptions{TTL: ttl})
	return err
}

// Delete deletes a key, if there is one.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := (*state.Keep)(s).Space().Delete(ctx, key, state.Any)
	return err
}
