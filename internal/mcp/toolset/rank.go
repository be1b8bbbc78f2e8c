package toolset

import (
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
)

const (
	// wordsMost is how many different words of a query are used.
	wordsMost = 16
	// entryWords is how many different words of a tool are used.
	entryWords = 300
	// wordBytes is how many bytes of a word are used.
	wordBytes = 40
)

// These are the weights of a word in each of a tool's texts.
const (
	nameWeight        = 6
	titleWeight       = 4
	namespaceWeight   = 4
	descriptionWeight = 2
	parameterWeight   = 1
)

// An index has the words of a table's tools. The first search makes it.
type index struct {
	once  sync.Once
	words words
	tools [][]indexed // the words of each tool, by the place of its entry
}

// An indexed is a word of a tool with its weight.
type indexed struct {
	word   int32 // its number
	weight float32
}

// searched returns the index of the generation's entries, made on first use.
func (st *derived) searched() *index {
	x := st.index
	x.once.Do(func() { x.words, x.tools = st.set.indexOf(st.entries) })
	return x
}

// A fit is how well a word fits another. It is a byte, because a search keeps one for each word of the index, and an author can make up many words.
type fit uint8

const (
	fitsPart fit = iota + 1
	fitsBegin
	fitsWhole
)

// likeness is by how much each kind of fit counts.
var likeness = [...]float32{fitsPart: 0.3, fitsBegin: 0.7, fitsWhole: 1}

// rank returns the best tools of a view for a query, the best one first, and how many tools have any of the query's words. most is the largest
// number of tools that it returns. A tool is better if it has more of the words, rarer words, or has them in its name. For a query without words it
// returns all tools by name. The order depends only on the tools of the view, so it reveals nothing about others.
func (v *View) rank(query string, most int) (best []*entry, all int) {
	words := wordsOfQuery(query)
	if len(words) == 0 {
		return v.listed[:min(most, len(v.listed))], len(v.listed)
	}
	x := v.derived.searched()
	fits := make([]fit, x.words.size()*len(words)) // for each word of the index, how well it fits those of the query
	for q, word := range words {
		x.words.match(word, func(place int32, how fit) {
			known := &fits[int(place)*len(words)+q]
			*known = max(*known, how)
		})
	}
	scores := make([]float32, len(v.places)*len(words))
	counts := make([]int, len(words))
	for n, place := range v.places {
		of := scores[n*len(words) : (n+1)*len(words)]
		for _, w := range x.tools[place] {
			for q, how := range fits[int(w.word)*len(words):][:len(words)] {
				if how > 0 { // of few
					of[q] = max(of[q], likeness[how]*w.weight)
				}
			}
		}
		for q, score := range of {
			if score > 0 {
				counts[q]++
			}
		}
	}
	rarity := make([]float64, len(words))
	for q, n := range counts {
		rarity[q] = math.Log(1 + float64(len(v.listed))/float64(max(n, 1)))
	}
	top := ranking{most: most}
	for n, e := range v.listed {
		score, has := 0.0, 0
		for q, s := range scores[n*len(words) : (n+1)*len(words)] {
			if s > 0 {
				score += float64(s) / (float64(s) + 2) * rarity[q]
				has++
			}
		}
		if has == 0 {
			continue
		}
		score *= float64(has) / float64(len(words))
		if strings.EqualFold(e.name, strings.TrimSpace(query)) {
			score = math.Inf(1)
		}
		all++
		top.add(e, score)
	}
	return top.entries, all
}

// fillers are words that carry no meaning in a query, but appear in many descriptions.
const fillers = " a an and are as at be by can do does for from how i in is it me my of on or that the this to what which with "

// wordsOfQuery returns the different words of a query, without the fillers if there are others.
func wordsOfQuery(query string) (words []string) {
	all := wordsOf(query)
	isFiller := func(word string) bool { return strings.Contains(fillers, " "+word+" ") }
	if slices.ContainsFunc(all, func(word string) bool { return !isFiller(word) }) {
		all = slices.DeleteFunc(all, isFiller)
	}
	for _, word := range all {
		if len(words) < wordsMost && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// A ranking keeps the best tools, and among equal ones the first.
type ranking struct {
	most    int
	entries []*entry
	scores  []float64
}

func (r *ranking) add(e *entry, score float64) {
	if len(r.entries) == r.most && score <= r.scores[r.most-1] {
		return
	}
	n := sort.Search(len(r.scores), func(i int) bool { return r.scores[i] < score })
	if len(r.entries) == r.most {
		r.entries, r.scores = r.entries[:r.most-1], r.scores[:r.most-1]
	}
	r.entries, r.scores = slices.Insert(r.entries, n, e), slices.Insert(r.scores, n, score)
}
