// Package nothttp makes errors about servers that don't speak HTTP safe to show. Those of package net/http show the first line of the answer, which
// may come from a private service of this machine.
package nothttp

import (
	"errors"
	"net/textproto"
	"strings"
)

// ErrAnswer means that an answer is not HTTP.
var ErrAnswer = errors.New("what answers does not speak HTTP: check the address and its port")

// Error returns ErrAnswer in place of an error of package net/http about such an answer, and any other error as it is.
func Error(err error) error {
	if err == nil {
		return nil
	}
	_, isHeader := errors.AsType[textproto.ProtocolError](err)
	says := err.Error() // its type is not exported
	for _, what := range []string{"malformed HTTP ", "malformed MIME header", "bad Content-Length ", "unsupported transfer encoding", "too many transfer encodings"} {
		isHeader = isHeader || strings.Contains(says, what)
	}
	if isHeader {
		return ErrAnswer
	}
	return err
}
