// Package reach decides where a request may go: it reads URLs that all programs read alike, matches them with patterns, and knows which addresses are
// outside the public internet. It looks nothing up and connects to nothing.
//
// Programs read the same URL in different ways, and an attack is a URL that is checked in one way and sent in another. So a URL that two programs
// might read differently is refused here, and the URL that is sent is put together from the parts that were checked.
package reach

import "slices"

// Allowed reports whether a request to t is both needed and granted: whether a pattern of either list matches it. It is the whole policy, except for
// the addresses that the host turns out to have, which [Special] classifies.
func Allowed(needed, granted []Pattern, t Target) bool {
	matches := func(p Pattern) bool { return p.Match(t) }
	return slices.ContainsFunc(needed, matches) && slices.ContainsFunc(granted, matches)
}
