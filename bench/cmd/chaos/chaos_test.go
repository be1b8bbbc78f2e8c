package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/cluster"
)

// TestMain also lets this program be a NATS node, and the process that mounts disks, as the command does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == cluster.Command || os.Args[1] == inside) {
		main()
	}
	os.Exit(m.Run())
}

// TestFaults makes some of the faults with the real server, each for a moment.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	server := filepath.Join(t.TempDir(), "toolsrv")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", server, "./cmd/toolsrv")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := run(ctx, []string{"-server", server, "-for", "20s", "-only", "server0,node0,all nodes: kill"}, &out, t.Output())
	t.Logf("\n%s", &out)
	if err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "\n"); got < 10 {
		t.Errorf("the table has %d lines", got)
	}
}

// TestJudged checks the judgement of callers' answers, for each way in which they can be wrong.
func TestJudged(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	right := func(answer) bool { return true }
	for _, test := range []struct {
		name string
		kind string
		a    answer
		dies string // a server that is killed after five seconds
		want told
		bad  int
	}{
		{"right", "plain", answer{status: 200, from: at(1), to: at(2)}, "", told{right: 1}, 0},
		{"killed meanwhile", "plain", answer{status: 502, lost: "server0", from: at(4), to: at(6)}, "server0", told{lost: 1}, 0},
		{"killed afterwards", "plain", answer{status: 502, lost: "server0", from: at(1), to: at(2)}, "server0", told{failed: 1}, 1},
		{"killed long before", "plain", answer{status: 502, lost: "server0", from: at(20), to: at(21)}, "server0", told{failed: 1}, 1},
		{"another one killed", "plain", answer{status: 502, lost: "server0", from: at(4), to: at(6)}, "server1", told{failed: 1}, 1},
		{"a write refused", "write", answer{status: 502, body: `{"code":"unavailable"}`, from: at(1), to: at(2)}, "", told{refused: 1}, 0},
		{"another call refused", "plain", answer{status: 502, body: `{"code":"unavailable"}`, from: at(1), to: at(2)}, "", told{failed: 1}, 1},
		{"nobody there", "plain", answer{status: 503, from: at(1), to: at(2)}, "", told{failed: 1}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			if test.dies != "" {
				l.killed = []death{{test.dies, at(5)}}
			}
			l.note(test.kind, test.a, right)
			l.settle()
			if got := *l.kinds[test.kind]; got != test.want || len(l.wrong) != test.bad {
				t.Errorf("got %+v and %q, want %+v and %d wrong", got, l.wrong, test.want, test.bad)
			}
		})
	}
	l := newLedger()
	l.note("plain", answer{status: 200, from: at(1), to: at(2)}, func(answer) bool { return false })
	if len(l.wrong) != 1 {
		t.Errorf("a wrong answer is judged %q", l.wrong)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	for _, test := range []struct {
		name string
		all  []counted
		want int
	}{
		{"none", nil, 0},
		{"in turn", []counted{{at(0), at(1), 1}, {at(1), at(2), 2}}, 0},
		{"at the same time", []counted{{at(0), at(2), 2}, {at(1), at(3), 1}}, 0},
		{"with a gap", []counted{{at(0), at(1), 1}, {at(1), at(2), 7}}, 0},
		{"twice the same", []counted{{at(0), at(2), 1}, {at(1), at(3), 1}}, 1},
		{"back", []counted{{at(0), at(1), 2}, {at(2), at(3), 1}}, 1},
		{"far back", []counted{{at(0), at(1), 5}, {at(0), at(9), 3}, {at(2), at(3), 2}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := counts(slices.Clone(test.all)); len(got) != test.want {
				t.Errorf("got %q, want %d", got, test.want)
			}
		})
	}
}
