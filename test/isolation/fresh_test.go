package isolation_test

import (
	"encoding/json"
	"testing"
	"time"
)

// fresh are scripts that return values that must be different in each call. They also return the clock in milliseconds, how long a
// sleep of 20 ms took, and the hash of a text, which must always be the same.
var fresh = map[language]string{
	python: `
import random, secrets, tempfile, time, uuid
from typing import Any
from toolsrv import tool

own = random.Random()
system = random.SystemRandom()
rolled = random.random()

@tool
def act() -> Any:
    """Returns new values."""
    begun = time.monotonic()
    time.sleep(0.02)
    slept = (time.monotonic() - begun) * 1000
    new = [random.random(), random.randint(0, 2**60), own.random(), random.Random().random(), system.random(), random.gauss(0, 1), secrets.token_hex(), str(uuid.uuid4()), random.sample(range(10**9), 3)]
    return {"new": list(map(repr, new)), "now": time.time() * 1000, "slept": slept, "same": [hash("text"), random.Random(5).random(), rolled]}
`,
	javascript: `
import { tool } from "toolsrv";
const rolled = Math.random();
export const act = tool({
  description: "Returns what is new.",
  parameters: { type: "object" },
  run: async () => {
    const begun = performance.now();
    await new Promise((r) => setTimeout(r, 20));
    const slept = performance.now() - begun;
    const fresh = [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(16))].join()];
    return { new: fresh.map(String), now: Date.now(), slept, same: [rolled] };
  },
});
`,
}

// TestDrawnAnew lets calls draw random numbers and read clocks: these must not be the snapshot's.
func TestDrawnAnew(t *testing.T) {
	t.Parallel()
	for l, source := range fresh {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.need(t)
			p := l.load(t, host(t), source)
			seen := map[string]bool{}
			same := ""
			for range 5 {
				before := time.Now()
				output, err := call(t, p, "{}", ample)
				if err != nil {
					t.Fatal(err)
				}
				var got struct {
					New        []string
					Now, Slept float64
					Same       json.RawMessage
				}
				if err := json.Unmarshal([]byte(output), &got); err != nil {
					t.Fatal(err)
				}
				for i, value := range got.New {
					if seen[value] {
						t.Errorf("value %d is %s in another call, too", i, value)
					}
					seen[value] = true
				}
				if now := time.UnixMilli(int64(got.Now)); now.Before(before.Add(-time.Second)) || now.After(time.Now().Add(time.Second)) {
					t.Errorf("the clock shows %v at %v", now, before)
				}
				if got.Slept < 19 {
					t.Errorf("a sleep of 20 ms took %v ms", got.Slept)
				}
				if same == "" {
					same = string(got.Same)
				}
				if string(got.Same) != same {
					t.Errorf("the value that must be the same in each call was %s, and is now %s", same, got.Same)
				}
			}
		})
	}
}
