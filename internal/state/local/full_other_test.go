//go:build !linux

package local_test

func fillDisk(string, string) {}
