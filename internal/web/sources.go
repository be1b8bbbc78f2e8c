package web

import "net/netip"

// maxSources is how many addresses are counted at a time. A client that sends more than one in that many requests is kept.
const maxSources = 32

// sources counts requests by address, in little memory however many addresses there are: a new address without a place takes the place of the
// one with the fewest requests, and its count (the space-saving algorithm of Metwally, Agrawal and El Abbadi). The zero
// value has none.
type sources struct {
	of   [maxSources]source
	kept int
}

// A source is an address, or a network that one client may have for itself.
type source struct {
	from     netip.Addr
	requests int
	others   int // of the requests: of addresses that had the place before, at most
}

// add counts a request. Of IPv6, /64 is one source: that is the least that a client gets, and it may use all addresses of it.
func (s *sources) add(from netip.Addr) {
	if from.Is6() {
		p, _ := from.WithZone("").Prefix(64) // it fails for a longer one than the address only
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

// busiest returns who sent most, and how many requests that were at least.
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
