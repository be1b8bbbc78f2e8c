package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// ReloadArguments are the arguments of the operation reload.
type ReloadArguments struct {
	DryRun bool `json:"dry_run,omitempty" description:"Whether to only show what would change."`
}

// A Reloading is what a reload of the configuration changes.
type Reloading struct {
	DryRun        bool     `json:"dry_run" description:"Whether nothing was changed."`
	Version       string   `json:"version" description:"The version of what would be changed, for If-Match: with it a reload does exactly what a dry run showed, or nothing."`
	Settings      []string `json:"settings" description:"Settings that change."`
	Limits        []string `json:"limits" description:"Limits that change."`
	Grants        []string `json:"grants" description:"Entries of grants that are added or removed."`
	TokensAdded   []string `json:"tokens_added" description:"Names of added tokens of the configuration."`
	TokensRemoved []string `json:"tokens_removed" description:"Names of removed tokens of the configuration."`
	Enabled       []string `json:"enabled" description:"Tools that are switched on."`
	Disabled      []string `json:"disabled" description:"Tools that are switched off."`
	Granted       []string `json:"granted" description:"Tools that got the grants they lacked."`
	Withdrawn     []string `json:"withdrawn" description:"Tools that lost grants they need."`
	Restart       []string `json:"restart" description:"Keys that have changed since the start, and take effect only at a restart."`
}

func reload() Operation {
	return Changes("reload", "Read the configuration again, or show what that would change", func(ctx context.Context, r *Request, in ReloadArguments) (Reloading, error) {
		next, err := r.Server.Prepare(in.DryRun)
		if err != nil {
			return Reloading{}, err
		}
		defer next.Close()
		done := next.Changes()
		if done.Version, err = versionOf(done); err != nil {
			return Reloading{}, err
		}
		if err := r.Expect(done.Version); err != nil {
			return Reloading{}, err
		}
		done.DryRun = in.DryRun
		r.Version = done.Version
		if in.DryRun {
			return done, nil
		}
		return done, r.change(ctx, "configuration", nil, done, func(context.Context) error { return next.Apply() })
	})
}

// A Prepared is a configuration that has been read and made, but is not in force yet. No other one can be put in force until Close.
type Prepared interface {
	// Changes returns what the configuration changes. Lists may be nil.
	Changes() Reloading
	// Apply puts it in force.
	Apply() error
	Close()
}

func versionOf(r Reloading) (string, error) {
	text, err := json.Marshal(r)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}
