//go:build !paranoid

// Package paranoid tells whether the program was built with the tag paranoid. With it, every sandbox checks after every call that nothing is left of
// the call: go test -tags paranoid ./...
package paranoid

// On is false; the tag paranoid makes it true.
const On = false
