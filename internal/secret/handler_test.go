package secret_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

type valuer string

func (v valuer) LogValue() slog.Value { return slog.StringValue(string(v)) }

// TestHandler logs a secret in each part of a line.
// Proves: Secrets stay secret
func TestHandler(t *testing.T) {
	t.Parallel()
	const word = "hunter2hunter2"
	v, _, err := secret.Read(secret.Sources{Files: map[string]string{"x": testkit.Put(t, private(t), "x", word)}})
	if err != nil {
		t.Fatal(err)
	}
	s := secret.NewStore(nil)
	var log testkit.Log
	l := slog.New(s.Handler(log.Logger(slog.LevelInfo).Handler()))
	l.Info(word)
	if log.Count(word) != 1 {
		t.Errorf("without a secret, a line is not as it was:\n%s", log.String())
	}
	if warning := s.Add(v); warning != "" {
		t.Fatal(warning)
	}
	quoted := strings.ReplaceAll(fmt.Sprintf("%q", word+"\n"), "2", `\u0032`)
	for name, say := range map[string]func(){
		"message":    func() { l.Warn("it is " + word) },
		"string":     func() { l.Info("a", "is", word) },
		"escaped":    func() { l.Info("a", "is", quoted) },
		"error":      func() { l.Info("a", "is", fmt.Errorf("b: %w", errors.New(word))) },
		"bytes":      func() { l.Info("a", "is", []byte(word)) },
		"strings":    func() { l.Info("a", "is", []string{"b", word}) },
		"struct":     func() { l.Info("a", "is", struct{ inner string }{word}) },
		"valuer":     func() { l.Info("a", "is", valuer(word)) },
		"group":      func() { l.Info("a", slog.Group("g", "is", word)) },
		"attributes": func() { l.With("is", word, "was", 1).Info("a") },
		"deep group": func() {
			l.WithGroup("g").With("is", word).WithGroup("h").Info("a", slog.Group("i", "is", errors.New(word)))
		},
	} {
		before := log.String()
		say()
		line := strings.TrimPrefix(log.String(), before)
		if strings.Contains(line, word[:6]) || strings.Contains(line, "0032") || !strings.Contains(line, "[secret]") {
			t.Errorf("%s: got %q", name, line)
		}
	}
	before := log.String()
	l.Info("harmless", "number", 7, "error", errors.New("of another kind"), "at", slog.GroupValue(slog.Bool("b", true)))
	if line := strings.TrimPrefix(log.String(), before); !strings.Contains(line, `msg=harmless number=7 error="of another kind" at.b=true`) {
		t.Errorf("a harmless line has become %q", line)
	}
}
