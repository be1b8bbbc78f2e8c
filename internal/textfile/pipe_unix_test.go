//go:build unix

package textfile_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// TestPipe reads pipes: one that somebody writes to later, in pieces, one that nobody ever writes to, and one that stalls.
func TestPipe(t *testing.T) {
	t.Parallel()
	pipe := func() string {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("written to", func(t *testing.T) {
		t.Parallel()
		path := pipe()
		wrote := make(chan error, 1)
		go func() {
			time.Sleep(50 * time.Millisecond)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = io.WriteString(f, "a = 1\n")
				time.Sleep(50 * time.Millisecond)
				_, _ = io.WriteString(f, "b = 2\n")
				_ = f.Close()
			}
			wrote <- err
		}()
		got, err := textfile.Read(path)
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		if string(got) != "a = 1\nb = 2\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
	for name, stalls := range map[string]bool{"silent": false, "stalled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := pipe()
			if stalls {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := io.WriteString(f, "a = 1\n"); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			got, err := textfile.Read(path)
			if took := time.Since(began); took < 9*time.Second || took > time.Minute {
				t.Errorf("it took %v, and a pipe has ten seconds", took)
			}
			if len(got) > 0 || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "it is a pipe") {
				t.Errorf("%q, %v; want an error that names the pipe", got, err)
			}
		})
	}
}
