package text

import "strings"

// A Reach says how far a typed name may be from the known name that was meant. Case is ignored.
type Reach struct {
	// Letters is how many letters may be missing, added, changed or swapped with the next one.
	Letters int
	// Share allows one wrong letter for every Share typed letters. One is always allowed.
	Share int
	// Shortest is the least number of bytes of a candidate.
	Shortest int
	// Longest is the largest number of bytes of a typed name, so that the work of a guess is bounded.
	Longest int
	// Joined ignores "-", "_" and spaces. Otherwise "-" is the same as "_".
	Joined bool
}

// Nearest returns the known name that a mistyped one was probably meant to be, or "" if none is near: up to three letters may be wrong, and at most a
// third of them.
func Nearest(typed string, known []string) string {
	return Reach{Letters: 3, Share: 3, Longest: 256}.Nearest(typed, known)
}

// Nearest returns the known name that a mistyped one was probably meant to be, or "" if none is within reach. Of several that are equally near,
// it returns the first. Its work is bounded by len(typed) times the bytes of all names.
func (r Reach) Nearest(typed string, known []string) string {
	if len(typed) > r.Longest {
		return ""
	}
	written := len(typed)
	typed = r.plain(typed)
	best, least := "", 1+max(1, min(len(typed)/r.Share, r.Letters))
	for _, name := range known {
		if gap := len(name) - written; len(name) < r.Shortest || !r.Joined && (gap >= least || -gap >= least) {
			continue
		}
		if n := distance(typed, r.plain(name), least); n < least && n < len(name) {
			best, least = name, n
		}
	}
	return best
}

var (
	dashes = strings.NewReplacer("-", "_")
	joined = strings.NewReplacer("-", "", "_", "", " ", "")
)

// plain returns a name without the differences that are ignored.
func (r Reach) plain(name string) string {
	if r.Joined {
		return strings.ToLower(joined.Replace(name))
	}
	return strings.ToLower(dashes.Replace(name))
}

// distance returns how many bytes must be inserted, removed, replaced or swapped with the next to turn a into b: the optimal string alignment
// distance. It need not be right where it is most or more.
func distance(a, b string, most int) int {
	if gap := len(a) - len(b); gap >= most || -gap >= most {
		return most
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
