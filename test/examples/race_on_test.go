//go:build race

package examples_test

const raced = true
