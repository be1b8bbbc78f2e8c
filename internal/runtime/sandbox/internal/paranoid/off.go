//go:build !paranoid

// Package paranoid tells whether the program was built with the tag paranoid, which has every sandbox check after
// every call that nothing is left of it: go test -tags paranoid ./...
package paranoid

// On is false; the tag paranoid makes it true.
const On = false
