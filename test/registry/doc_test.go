// Package registry_test asks the real registry of Debian, and has the client oras pull what we push, and push what we pull. It needs the programs
// docker-registry and oras; make setup-registry installs them.
package registry_test
