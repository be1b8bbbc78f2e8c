//go:build lean

package signature

import "errors"

// errLean is returned by a program that was built with the tag lean, which can't check signatures.
var errLean = errors.New("this program was built with the tag lean, so it can't check signatures: use the one that make build makes")

// A Trust does not exist in this build.
type Trust struct{}

// Open fails.
func Open([]Signer) (*Trust, error) { return nil, errLean }

// Claims fails.
func Claims([]byte) (s Statement, err error) { return s, errLean }

// Signature fails.
func (*Trust) Signature(_, _ []byte) (by By, err error) { return by, errLean }

// Statement fails.
func (*Trust) Statement(_, _ []byte) (s Statement, err error) { return s, errLean }

// Simple fails.
func (*Trust) Simple(_, _, _ []byte) (by By, err error) { return by, errLean }

// Keys reports false.
func (*Trust) Keys() bool { return false }

// Fingerprint returns the fingerprint of no signers.
func (*Trust) Fingerprint() string { return "" }
