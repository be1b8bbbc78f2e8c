// Package nothttp says that what was asked does not speak HTTP, without what it has sent: package net/http shows its first line, which may be of a
// service of this machine that is nobody else's business.
package nothttp

import (
	"errors"
	"net/textproto"
	"strings"
)

// ErrAnswer means that an answer is not one of HTTP.
var ErrAnswer = errors.New("what answers does not speak HTTP: check the address and its port")

// Error returns ErrAnswer in place of an error of package net/http about such an answer, and any other error as it is.
func Error(err error) error {
	if err == nil {
		return nil
	}
	_, isHeader := errors.AsType[textproto.ProtocolError](err)
	says := err.Error() // its type has no name that others can use
	for _, what := range []string{"malformed HTTP ", "malformed MIME header", "bad Content-Length ", "unsupported transfer encoding", "too many transfer encodings"} {
		isHeader = isHeader || strings.Contains(says, what)
	}
	if isHeader {
		return ErrAnswer
	}
	return err
}
