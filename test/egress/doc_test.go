// Package egress_test has the real server send requests in a network namespace of its own: one interface, which has public, private,
// link-local and metadata addresses, a server on each, and a DNS server. Which server was hit is what counts. It needs Linux, and the
// right to make namespaces; make test-egress runs it.
package http_test
