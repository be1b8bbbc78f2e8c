// Package double lets a native test replace the host.
package double

import "io/fs"

// A Host does what needs a grant. Arguments and answers have the ABI's form. An error that is no *toolsrv.Failure counts as one with the
// code "unavailable".
type Host interface {
	// Send takes a request's head, JSON, and its body.
	Send(head, body []byte) (answer []byte, err error)
	Get(key string) (answer []byte, err error)
	// Set takes the time to live in milliseconds, where 0 means forever, and the version that the key must have: 0 means that there must be no key,
	// -1 allows anything.
	Set(key string, value []byte, ttl, expect int64) (answer []byte, err error)
	Delete(key string, expect int64) (answer []byte, err error)
	List(prefix, after string, limit int32) (answer []byte, err error)
	Secret(name string) (answer []byte, err error)
	Settings() (answer []byte, err error)
	Call(path string, arguments []byte) (answer []byte, err error)
	// Dir returns a folder, or nil.
	Dir(name string) fs.FS
}

// Key is the key by which a call has its [Host] among its values.
type Key struct{}
