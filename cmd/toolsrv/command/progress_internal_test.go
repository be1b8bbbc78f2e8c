package command

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
)

// TestProgressText checks reports in the form for people, also with foreign text.
func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		done, total float64
		message     string
		want        string
	}{
		{0, 0, "", "0"},
		{3, 10, "reading rows", "30 %, 3 of 10: reading rows"},
		{10, 10, "", "100 %, 10 of 10"},
		{999.9999, 1000, "", "99 %, 1000 of 1000"},
		{1.0 / 3, 0, "a", "0.333: a"},
		{5e-324, 0, "", "4.941e-324"},
		{math.MaxFloat64, math.MaxFloat64, "", "100 %, 1.798e+308 of 1.798e+308"},
		{1, 0, " two\n\tlines\r\x1b[2J\u202e ", `1: two lines\u000d\u001b[2J\u202e`},
	} {
		if got := progressText(test.done, test.total, test.message); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestProgressLine shows reports without a terminal.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	for asJSON, want := range map[bool]string{
		false: "progress: 50 %, 1 of 2: ü\\u001b\nprogress: 2\n",
		true:  `{"progress":{"done":1,"message":"ü\u001b","total":2}}` + "\n" + `{"progress":{"done":2,"message":""}}` + "\n",
	} {
		var b bytes.Buffer
		p := newProgressLine(&b, asJSON)
		p.Progress(1, 2, "ü\x1b")
		p.Log(slog.LevelInfo, "log", "x")
		p.Progress(2, 0, "")
		p.clear()
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}

// TestProgressOnTerminal checks that there is one changing line, which is never wider than the terminal and is cleared for log lines.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !isTerminal(terminal) {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	defer terminal.Close()
	if p := newProgressLine(terminal, false); p.width < 20 {
		t.Errorf("a terminal has the width %d", p.width)
	}
	if p := newProgressLine(terminal, true); p.width != 0 {
		t.Errorf("JSON for a terminal has the width %d", p.width)
	}
	var b bytes.Buffer
	p := &progressLine{w: &b, width: 20}
	p.clear()
	p.Progress(1, 0, "long "+strings.Repeat("x", 100))
	p.Progress(2, 0, strings.Repeat("界", 100))
	p.Log(slog.LevelInfo, "log", "x")
	p.Log(slog.LevelInfo, "log", "y")
	p.Progress(3, 0, "short")
	p.clear()
	const clear = "\r\x1b[K"
	if want := "1: long xxxxxxxxxxx" + clear + "2: 界界界界界界界界" + clear + "3: short" + clear; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
