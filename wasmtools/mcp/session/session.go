// Package session speaks the Model Context Protocol with clients that keep a session: those of the versions before
// 2026-07-28 over HTTP, which begin with initialize, and those of all versions over standard input and output.
//
// [Sessions] are those of HTTP, and [Stdio] is the whole of a session over two pipes. Both read and write messages; what a request is
// answered with is the matter of package protocol.
package session
