// Command gocpu has tools that compute for some tens of milliseconds each: the tools hash, sort, json and matrix, in that order. Each tool returns a
// checksum, so that results can be compared.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type none struct{}

var _ = toolsrv.Export(toolsrv.Module{Namespace: "bench", Tools: []toolsrv.Tool{
	toolsrv.Func("hash", "Hash a megabyte several times.", hash),
	toolsrv.Func("sort", "Sort numbers.", sort),
	toolsrv.Func("json", "Read and write JSON.", text),
	toolsrv.Func("matrix", "Multiply two matrices.", matrix),
}})

func main() {}

// numbers is the xorshift generator: the same numbers in every run.
type numbers uint32

func (n *numbers) next() uint32 {
	x := uint32(*n)
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*n = numbers(x)
	return x
}

func hash(*toolsrv.Call, none) (uint32, error) {
	random := numbers(1)
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(random.next())
	}
	var sum [sha256.Size]byte
	for range 4 {
		sum = sha256.Sum256(data)
		copy(data, sum[:])
	}
	return binary.BigEndian.Uint32(sum[:]), nil
}

func sort(*toolsrv.Call, none) (uint32, error) {
	random := numbers(2)
	list := make([]uint32, 300_000)
	for i := range list {
		list[i] = random.next()
	}
	slices.Sort(list)
	sum := uint32(0)
	for i := 0; i < len(list); i += 997 {
		sum = sum<<1 ^ sum>>31 ^ list[i]
	}
	return sum, nil
}

type item struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Price float64  `json:"price"`
}

func text(*toolsrv.Call, none) (uint32, error) {
	random := numbers(3)
	list := make([]item, 1_000)
	for i := range list {
		list[i] = item{i, fmt.Sprintf("item %d", random.next()), []string{"a", "b"}, float64(random.next()) / 256}
	}
	sum := uint32(0)
	for range 3 {
		written, err := json.Marshal(list)
		if err != nil {
			return 0, err
		}
		for _, b := range written {
			sum = sum*31 + uint32(b)
		}
		list = nil
		if err := json.Unmarshal(written, &list); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func matrix(*toolsrv.Call, none) (uint32, error) {
	const n = 224
	random := numbers(4)
	fill := func() []float64 {
		m := make([]float64, n*n)
		for i := range m {
			m[i] = float64(random.next()) / math.MaxUint32
		}
		return m
	}
	a, b, product := fill(), fill(), make([]float64, n*n)
	for i := range n {
		for k := range n {
			factor := a[i*n+k]
			for j := range n {
				product[i*n+j] += factor * b[k*n+j]
			}
		}
	}
	sum := uint32(0)
	for _, x := range product {
		sum = sum<<1 ^ sum>>31 ^ uint32(math.Float64bits(x))
	}
	return sum, nil
}
