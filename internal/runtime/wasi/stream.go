package wasi

import (
	"bytes"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// streams makes log lines of what a guest writes to stdout and stderr.
type streams struct {
	begun [3][]byte // the unfinished line of each descriptor; at most MaxLine and one byte
	last  []byte    // last line of stderr that is not blank
}

// said processes what the guest wrote to stdout or stderr.
func said(c *hostcall.Call, fd uint32, piece []byte) {
	s := &current(c).streams
	begun := &s.begun[fd]
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			*begun = join(*begun, piece)
			return
		}
		s.line(c, fd, join(*begun, piece[:end]))
		*begun = (*begun)[:0]
		piece = piece[end+1:]
	}
}

// flush logs unfinished lines.
func (s *streams) flush(c *hostcall.Call) {
	for fd, begun := range s.begun {
		s.line(c, uint32(fd), begun)
		s.begun[fd] = nil
	}
}

func (s *streams) line(c *hostcall.Call, fd uint32, text []byte) {
	text = bytes.TrimRight(text, "\r")
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	if fd == 2 {
		s.last = append(s.last[:0], text...)
		c.Log(slog.LevelInfo, "stderr", text)
		return
	}
	c.Log(slog.LevelInfo, "stdout", text)
}

// join appends as much of a line as there is room for. One byte above MaxLine shows that there was more.
func join(begun, piece []byte) []byte {
	return append(begun, piece[:min(len(piece), hostcall.MaxLine+1-len(begun))]...)
}
