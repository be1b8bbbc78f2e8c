//go:build race

package openapi_test

// raceEnabled: the race detector lets sync.Pool forget, so allocations are not counted under it.
const raceEnabled = true
