// Package session speaks the Model Context Protocol with clients that keep a session: clients of the versions before
// 2026-07-28 over HTTP, which begin with initialize, and clients of all versions over standard input and output.
//
// [Sessions] are for HTTP, and [Stdio] is a whole session over two pipes. Both read and write messages. Package protocol decides the answers.
package session
