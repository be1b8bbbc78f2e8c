// Package egress_test lets the real server send requests in a separate network namespace: it has one interface with public, private, link-local and
// metadata addresses, a server on each address, and a DNS server. The tests check which server was hit. It needs Linux, and the right to make
// namespaces; make test-egress runs it.
package http_test
