// Package bench compares toolsrv with other ways to do the same, side by side in one run. It is a module of its own, so that the programs that it
// compares toolsrv with never become dependencies of toolsrv's users.
package bench
