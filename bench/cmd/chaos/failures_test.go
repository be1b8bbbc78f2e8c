package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/generated/failures.md")

// failures lists what can fail with servers that share a state, what the servers do then, and what operators do. This command makes the failures
// that name faults, and test/nats makes the others.
var failures = []struct {
	faults   string // matches the names of faults
	what     string
	servers  string
	whatToDo string
}{
	{`^server\d: (kill|SIGSTOP)`, "a server is killed, or hangs", "The others go on serving. Only the calls that ran on the failed server are lost.",
		"Have the balancer ask `/readyz` each second, and pass a call on to the next server only where none was reached. Start the server again."},
	{`^upgrade`, "a new version", "Old and new servers share the state. A day after the last old one, newer forms of records are written, as the log says; then the old version no longer starts.",
		"One server after the other, within a day: take it out of the balancer, SIGTERM, start the new one. Going back is the same within that day; later it needs an older copy of the bucket."},
	{`^(server\d: cut off|all nodes: kill)`, "NATS is away: network, nodes, credentials", "They serve with their copy of the state, so they still accept tokens that were revoked elsewhere meanwhile. Admin calls and writes of tools end with `unavailable`; changes `--until-restart` work on the server's machine. `/readyz` stays 200 and has `\"state\":\"cut off\"`, `toolsrv status` says since when and why, `toolsrv_state_cut_off` is 1.",
		"Bring NATS back. Servers notice within a second, take up what they missed, and log `the state is complete again`."},
	{`^node\d: (kill|SIGSTOP)`, "a node of NATS is killed or hangs", "Nothing, unless the node led the bucket: then writes wait or are refused until another node leads it, up to 10 s.", "Start it."},
	{`^node\d: cut off`, "a node is cut off from the others", "Servers that are connected to it count as cut off, and go to another node within some 12 s.", "Mend the network."},
	{`^two nodes`, "no majority of nodes", "Reads go on. A write ends after 4 s, and others are refused at once for 3 s after that.", "Start nodes; a stream needs two of three. Writes go on some 8 s later."},
	{`: slow to`, "NATS is slow", "Writes take up to 4 s: see `toolsrv_state_write_seconds`.", "Look at its disks and network."},
	{"", "its account or bucket is full", "The last sixteenth is for operators and deletions: tools get `unavailable`, and the log warns. Reads go on.", "Raise the limit: `nats account info`."},
	{`disk full`, "a node's disk is full", "It keeps nothing more; with two such nodes, there is no majority.", "Make room, then restart each such node."},
	{`clock`, "a machine's clock is wrong", "The log warns of 5 s and more. Keys with a time to live end by NATS's clock, tokens by each server's own: too early or too late.", "Set the clock."},
	{"", "the bucket was deleted or restored", "Servers that know it go on serving, but refuse to read and write once a bucket with its name begins anew.", "Restore it with servers stopped, and start them."},
}

// TestFailuresPage compares docs/generated/failures.md with failures, and checks that it has a row for each fault of a run.
func TestFailuresPage(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/generated/failures.md"
	var b strings.Builder
	b.WriteString("# Failures\n\nWhat [servers with one state](../operations.md#several-servers-with-one-state) do when something fails. `make chaos` causes nearly all of it under load, and counts what is lost. Written by `go test ./cmd/chaos -run TestFailuresPage -update` in `bench`.\n\n| what | what servers do | what to do |\n|---|---|---|\n")
	made := map[string]int{}
	for _, f := range failures {
		b.WriteString("| " + f.what + " | " + f.servers + " | " + f.whatToDo + " |\n")
		made[f.what] = 0
	}
	w := &world{options: options{old: "old", late: "late", node: "node", mounts: true}}
	for _, fault := range w.faults() {
		rows := 0
		for _, f := range failures {
			if f.faults != "" && regexp.MustCompile(f.faults).MatchString(fault.name) {
				rows++
				made[f.what]++
			}
		}
		if rows != 1 {
			t.Errorf("%d rows say what to do about the fault %q, want one", rows, fault.name)
		}
	}
	for _, f := range failures {
		if f.faults != "" && made[f.what] == 0 {
			t.Errorf("no fault of a run has a name that %q matches: %s", f.what, f.faults)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("docs/generated/failures.md differs from the list failures: go test ./cmd/chaos -run TestFailuresPage -update, in bench, writes the page again")
	}
}
