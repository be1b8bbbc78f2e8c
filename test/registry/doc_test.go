// Package registry_test asks the real registry of Debian, and has other clients push, pull, copy and sign there. make setup-registry installs the
// registry and the clients; what is missing is skipped.
package registry_test
