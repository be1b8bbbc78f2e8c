//go:build !race

package project_test

const raced = false
