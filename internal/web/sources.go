package web

import "net/netip"

// maxSources is how many addresses are counted at a time. A client that sends more than 1/maxSources of all requests keeps its place.
const maxSources = 32

// sources counts requests by address, in little memory however many addresses there are: if there is no free place, a new address takes over the
// place and the count of the one with the fewest requests (the space-saving algorithm of Metwally, Agrawal and El Abbadi). The zero value is ready to
// use.
type sources struct {
	of   [maxSources]source
	kept int
}

// A source is an address, or a network that one client may have for itself.
type source struct {
	from     netip.Addr
	requests int
	others   int // at most this many of the requests came from addresses that had the place before
}

// add counts a request. An IPv6 /64 is one source, because it is the least that a client gets, and the client may use all of its addresses.
func (s *sources) add(from netip.Addr) {
	if from.Is6() {
		p, _ := from.WithZone("").Prefix(64) // can't fail, since an IPv6 address has more than 64 bits
		from = p.Addr()
	}
	fewest := 0
	for i := range s.kept {
		if s.of[i].from == from {
			s.of[i].requests++
			return
		}
		if s.of[i].requests < s.of[fewest].requests {
			fewest = i
		}
	}
	if s.kept < maxSources {
		s.of[s.kept] = source{from: from, requests: 1}
		s.kept++
		return
	}
	least := s.of[fewest].requests
	s.of[fewest] = source{from, least + 1, least}
}

// busiest returns the address with the most requests, and how many it sent at least.
func (s *sources) busiest() (from string, requests int) {
	var most source
	for _, one := range s.of[:s.kept] {
		if one.requests-one.others > most.requests-most.others {
			most = one
		}
	}
	switch {
	case !most.from.IsValid():
		return "unknown", most.requests - most.others
	case most.from.Is6():
		return netip.PrefixFrom(most.from, 64).String(), most.requests - most.others
	}
	return most.from.String(), most.requests - most.others
}
