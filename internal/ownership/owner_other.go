//go:build !unix

package ownership

import "io/fs"

// hasOwners is false where access lists, which nothing here reads, say who may change a file.
const hasOwners = false

func self() user { return user{} }

func ownerOf(fs.FileInfo) (user, bool) { return user{}, false }
