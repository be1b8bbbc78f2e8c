//go:build race

package rust_test

const raced = true
