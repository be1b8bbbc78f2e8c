// Package precedence records which files keep a path from which other files: on disk, and in the state that servers share.
//
// If two files want the same path, the one that came first has it. Their source doesn't show which one that was. With this record, the next start,
// `toolsrv check` and other servers decide as the server did that saw which file came first.
package precedence

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A Precedence says which files each waiting file waits for, sorted. It never changes once it is made.
type Precedence map[string][]string

// Files get their paths at a start in these turns.
const (
	kept    = iota // a file that kept a path from another
	unknown        // a file about which nothing is noted
	waited         // a file that waited for another that is still there
)

// Turns returns the turn of each file of a source. Sorting by "which of two files kept a path from the other" would not give an order: with a third
// file about which nothing is noted, each of the three could come before another.
func (p Precedence) Turns(files []string) func(file string) int {
	here := make(map[string]bool, len(files))
	for _, f := range files {
		here[f] = true
	}
	turns := map[string]int{}
	for _, f := range files {
		for _, holder := range p[f] {
			if !here[holder] {
				continue
			}
			turns[f] = waited
			if turns[holder] != waited {
				turns[holder] = kept
			}
		}
	}
	return func(file string) int {
		if turn, ok := turns[file]; ok {
			return turn
		}
		return unknown
	}
}

// Equal reports whether two precedences are the same.
func (p Precedence) Equal(other Precedence) bool {
	return maps.EqualFunc(p, other, slices.Equal)
}

// Has reports whether a file waits for a certain holder.
func (p Precedence) Has(file, holder string) bool {
	_, ok := slices.BinarySearch(p[file], holder)
	return ok
}

// Sorted sorts the holders of each file, and drops those that are listed twice. It changes p, so it must be called before p is used elsewhere.
func (p Precedence) Sorted() Precedence {
	for file, holders := range p {
		slices.Sort(holders)
		p[file] = slices.Compact(holders)
	}
	return p
}

// Without returns the waits of p that other does not have.
func (p Precedence) Without(other Precedence) Precedence {
	left := make(Precedence, len(p))
	for file, holders := range p {
		if other[file] != nil {
			holders = slices.DeleteFunc(slices.Clone(holders), func(holder string) bool { return other.Has(file, holder) })
		}
		if len(holders) > 0 {
			left[file] = holders
		}
	}
	return left
}

// With returns p with the waits of other, except those that would make a cycle with what p says. So every chain of waits has an end.
func (p Precedence) With(other Precedence) Precedence {
	all, _ := p.Within(other, math.MaxInt)
	return all
}

// Within is like With, but the result has at most as many bytes as most says. It returns an error if it left something out.
func (p Precedence) Within(other Precedence, most int) (Precedence, error) {
	all := maps.Clone(p)
	if all == nil {
		all = Precedence{}
	}
	size := 0
	for file, holders := range p {
		size += sizeOf(file, holders)
	}
	for _, file := range slices.Sorted(maps.Keys(other)) {
		var added []string
		for _, holder := range other[file] {
			if holder != file && !all.Has(file, holder) && !all.leads(holder, file) {
				added = append(added, holder)
			}
		}
		if added == nil {
			continue
		}
		if size += sizeOf(file, added); size > most {
			return all, fmt.Errorf("the names would take more than %d bytes: remove or rename files that wait for others, such as %s", most, text.Short(file))
		}
		holders := slices.Concat(all[file], added)
		slices.Sort(holders)
		all[file] = slices.Compact(holders)
	}
	return all, nil
}

// sizeOf returns about how many bytes it takes to note the holders that one file waits for.
func sizeOf(file string, holders []string) int {
	size := len(file) + len(`"":[],`)
	for _, holder := range holders {
		size += len(holder) + len(`"",`)
	}
	return size
}

// mostSteps is how many holders are looked at to find out whether a file waits for another one. Chains are short, so that is enough, but a record
// that somebody else wrote may have long ones.
const mostSteps = 16

// leads reports whether a file waits for another one, directly or through others. It also returns true if that would take too long to find out.
func (p Precedence) leads(file, to string) bool {
	if p[file] == nil {
		return false
	}
	steps, seen := 0, map[string]bool{}
	for next := []string{file}; len(next) > 0; next = next[1:] {
		for _, holder := range p[next[0]] {
			if steps++; holder == to || steps > mostSteps {
				return true
			}
			if !seen[holder] {
				seen[holder] = true
				next = append(next, holder)
			}
		}
	}
	return false
}
