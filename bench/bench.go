// Package bench compares toolsrv with other ways to do the same, side by side in one run. It is a module of its own,
// so that what is compared with never becomes a dependency of toolsrv's users.
package bench
