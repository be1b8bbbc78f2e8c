// Package reach says where a request may go: it reads URLs that have one reading only, patterns of them, and knows which
// addresses are not of the public internet. It is pure: it looks nothing up and reaches nothing.
//
// Programs read the same URL in different ways, and an attack is a URL that is checked in one way and sent in another. So what
// two of them might read differently is refused here, and what is sent is written anew from the parts that were checked.
package reach

import "slices"

// Allowed reports whether a request to t is both needed and granted: whether a pattern of either list matches it. It is the
// whole policy, but for the addresses that the host turns out to have; [Special] is about those.
func Allowed(needed, granted []Pattern, t Target) bool {
	matches := func(p Pattern) bool { return p.Match(t) }
	return slices.ContainsFunc(needed, matches) && slices.ContainsFunc(granted, matches)
}
