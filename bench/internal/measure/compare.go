// Package measure has the tools of the benchmarks: they compare the times of several ways side by side, and measure what a process holds.
package measure

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// A Side is one of several ways to do the same thing.
type Side struct {
	Name string
	Do   func() error
}

// Times holds nanoseconds of one Do: a row for each side, a column for each round.
type Times [][]float64

// Compare runs the sides in turn, each for about span in each round, so that all of them meet the same disturbances.
// Each is run once before, unmeasured.
func Compare(rounds int, span time.Duration, sides ...Side) (Times, error) {
	times := make(Times, len(sides))
	for _, s := range sides {
		if err := s.Do(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	for range rounds {
		for i, s := range sides {
			runtime.GC() // so that no side pays for the garbage of the one before
			n, batch := 0, 1
			begin := time.Now()
			for {
				for range batch {
					if err := s.Do(); err != nil {
						return nil, fmt.Errorf("%s: %w", s.Name, err)
					}
				}
				n += batch
				elapsed := time.Since(begin)
				if elapsed >= span {
					times[i] = append(times[i], float64(elapsed.Nanoseconds())/float64(n))
					break
				}
				// The clock is read about a hundred times in a span.
				batch = max(1, int(float64(n)*float64(span)/float64(elapsed+1)/100))
			}
		}
	}
	return times, nil
}

// Of returns the median of a side in nanoseconds.
func (t Times) Of(side int) float64 { return Median(t[side]) }

// Ratio returns the median over the rounds of one side's time divided by the other's.
func (t Times) Ratio(above, below int) float64 {
	ratios := make([]float64, len(t[above]))
	for i := range ratios {
		ratios[i] = t[above][i] / t[below][i]
	}
	return Median(ratios)
}

// Difference returns the median over the rounds of one side's time less the other's, in nanoseconds.
func (t Times) Difference(of, less int) float64 {
	differences := make([]float64, len(t[of]))
	for i := range differences {
		differences[i] = t[of][i] - t[less][i]
	}
	return Median(differences)
}

// Median returns the middle element, or the mean of the middle two. It does not change the list.
func Median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Mean returns the geometric mean, which is the right one for ratios.
func Mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(list)))
}

// Percentile returns the value that p percent of the list do not exceed. It sorts the list.
func Percentile(list []time.Duration, p float64) time.Duration {
	slices.Sort(list)
	at := int(math.Ceil(float64(len(list))*p/100)) - 1
	return list[min(max(at, 0), len(list)-1)]
}
