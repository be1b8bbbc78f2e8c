package nats

import (
	"slices"
	"sort"
)

// ordered is a sorted set of keys. Adding or removing a key moves at most a few hundred others, not a million.
type ordered struct {
	runs [][]string // none is empty; each is sorted, and its keys come before those of the next one
}

// maxRun is the length of the longest run.
const maxRun = 512

// place returns the index of the run that contains a key, or would contain it.
func (o *ordered) place(key string) int {
	return max(0, sort.Search(len(o.runs), func(i int) bool { return o.runs[i][0] > key })-1)
}

func (o *ordered) add(key string) {
	if len(o.runs) == 0 {
		o.runs = [][]string{{key}}
		return
	}
	r := o.place(key)
	at, found := slices.BinarySearch(o.runs[r], key)
	if found {
		return
	}
	run := slices.Insert(o.runs[r], at, key)
	o.runs[r] = run
	if len(run) > maxRun {
		half := len(run) / 2
		if at == len(run)-1 {
			half = at // keys that are added in order fill their runs
		}
		o.runs[r] = slices.Clip(run[:half])
		o.runs = slices.Insert(o.runs, r+1, slices.Clone(run[half:]))
	}
}

func (o *ordered) remove(key string) {
	if len(o.runs) == 0 {
		return
	}
	r := o.place(key)
	at, found := slices.BinarySearch(o.runs[r], key)
	if !found {
		return
	}
	if o.runs[r] = slices.Delete(o.runs[r], at, at+1); len(o.runs[r]) == 0 {
		o.runs = slices.Delete(o.runs, r, r+1)
	}
}

// from yields the keys from key on. key itself need not be in the set.
func (o *ordered) from(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if len(o.runs) == 0 {
			return
		}
		r := o.place(key)
		at, _ := slices.BinarySearch(o.runs[r], key)
		for ; r < len(o.runs); r, at = r+1, 0 {
			for _, k := range o.runs[r][at:] {
				if !yield(k) {
					return
				}
			}
		}
	}
}
