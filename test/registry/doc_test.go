// Package registry_test uses Debian's real registry, and lets other clients push, pull, copy and sign there. make setup-registry installs the
// registry and the clients; tests whose programs are missing are skipped.
package registry_test
