package nats_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// askAPI sends a request to JetStream, as the program nats does.
func askAPI[T any](t testing.TB, conn *client.Conn, subject string, request any) (answer T) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	m, err := conn.Request(subject, body, 20*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	var failed server.ApiResponse
	if err := json.Unmarshal(m.Data, &failed); err != nil || failed.Error != nil {
		t.Fatalf("%s: %v, %v", subject, err, failed.Error)
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return answer
}

// A backup is what `nats backup stream` writes into a directory.
type backup struct {
	about server.JSApiStreamRestoreRequest // backup.json
	data  [][]byte                         // stream.tar.s2
}

// backUp does what `nats backup stream` does.
func backUp(t testing.TB, conn *client.Conn, stream string) (b backup) {
	t.Helper()
	inbox := conn.NewInbox()
	chunks, err := conn.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	about := askAPI[server.JSApiStreamSnapshotResponse](t, conn, "$JS.API.STREAM.SNAPSHOT."+stream, server.JSApiStreamSnapshotRequest{DeliverSubject: inbox, NoConsumers: true, ChunkSize: 4 << 10})
	b.about = server.JSApiStreamRestoreRequest{Config: *about.Config, State: *about.State}
	for {
		m, err := chunks.NextMsg(20 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Data) == 0 {
			return b
		}
		b.data = append(b.data, m.Data)
		if m.Reply == "" {
			continue
		}
		if err := m.Respond(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// restore does what `nats backup restore stream` does.
func restore(t testing.TB, conn *client.Conn, b backup) {
	t.Helper()
	to := askAPI[server.JSApiStreamRestoreResponse](t, conn, "$JS.API.STREAM.RESTORE."+b.about.Config.Name, b.about)
	for _, chunk := range b.data {
		if _, err := conn.Request(to.DeliverSubject, chunk, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	m, err := conn.Request(to.DeliverSubject, nil, 20*time.Second)
	var failed server.ApiResponse
	if err != nil || json.Unmarshal(m.Data, &failed) != nil || failed.Error != nil {
		t.Fatalf("restore: %v, %v", err, failed.Error)
	}
}

// TestRestored follows docs/operations.md on copies: servers with a restored state agree, and have the data of the copy. A token that was revoked
// before the copy stays revoked.
func TestRestored(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	js, conn := raw(t, c)
	one, other := newPeer(t, c.url()), newPeer(t, c.url())
	add := func(name string) string {
		t.Helper()
		secret, _, err := one.service.Tokens.Add(t.Context(), tokens.Spec{Name: name, Scopes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	revoke := func(name string) {
		t.Helper()
		if _, err := one.service.Tokens.Revoke(t.Context(), name, state.Any); err != nil {
			t.Fatal(err)
		}
	}
	turn := func(enabled bool) {
		t.Helper()
		if _, err := one.service.Switches.Apply(t.Context(), switches.Change{Set: []wasmtools.Switch{{Scope: "/math/add", Enabled: enabled, Since: time.Now()}}}); err != nil {
			t.Fatal(err)
		}
		if err := one.service.Audit.Append(t.Context(), audit.Entry{Action: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(secret string, taken, off bool) func() bool {
		return func() bool {
			for _, p := range []*peer{one, other} {
				status, _, _ := send(t, http.MethodPost, p.url+"/math/add", `{"a":1,"b":2}`, "Authorization", "Bearer "+secret)
				if isOff(p.service) != off || (status == http.StatusUnauthorized) == taken {
					return false
				}
			}
			return true
		}
	}
	ann, bob := add("ann"), add("bob")
	revoke("bob")
	turn(false)
	eventually(t, "both servers have the change", func() bool { return has(ann, true, true)() && has(bob, false, true)() })
	copied := backUp(t, conn, "KV_toolsrv") // while they run
	revoke("ann")
	eve := add("eve")
	turn(true)
	eventually(t, "both servers have what came after the copy", func() bool { return has(ann, false, false)() && has(eve, true, false)() })

	one.stop()
	other.stop()
	if err := js.DeleteStream(t.Context(), "KV_toolsrv"); err != nil { // `nats stream rm`
		t.Fatal(err)
	}
	restore(t, conn, copied)
	one, other = newPeer(t, c.url()), newPeer(t, c.url())
	if !has(ann, true, true)() || !has(bob, false, true)() || !has(eve, false, true)() {
		t.Error("the servers lack data of the copy")
	}
	if ends, err := other.service.Audit.Verify(t.Context(), nil); err != nil || ends.Last != 1 {
		t.Errorf("the audit has %d entries, %v", ends.Last, err)
	}
	revoke("ann") // the same change again, as after the copy
	turn(true)
	late := add("late")
	eventually(t, "changes are in force on both", func() bool {
		return has(ann, false, false)() && has(bob, false, false)() && has(late, true, false)()
	})
	if ends, err := other.service.Audit.Verify(t.Context(), nil); err != nil || ends.Last != 2 {
		t.Errorf("the audit has %d entries, %v", ends.Last, err)
	}
}

// TestBucketRestored restores the state and its bucket of tools: servers with nothing on disk serve the tools of the copy.
func TestBucketRestored(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	js, conn := raw(t, c)
	all := []*replica{startReplica(t, c.url(), nil), startReplica(t, c.url(), nil)}
	put := func(text string) {
		t.Helper()
		if a := all[0].put("x.wasm", tool(t, text, "", 300<<10, "x")); a.code != http.StatusOK {
			t.Fatalf("put: %v", a)
		}
		served(t, all, "/x", text)
	}
	put("v0001")
	put("v0002")
	streams := []string{"KV_toolsrv", "OBJ_toolsrv_tools"}
	var copied []backup
	for _, stream := range streams {
		copied = append(copied, backUp(t, conn, stream))
	}
	put("v0003")
	for _, r := range all {
		r.stop()
	}
	for _, stream := range streams {
		if err := js.DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range copied {
		restore(t, conn, b)
	}
	all = []*replica{startReplica(t, c.url(), nil), startReplica(t, c.url(), nil)}
	served(t, all, "/x", "v0002")
	if a := all[1].do("rollback", `{"path":"/x"}`); a.code != http.StatusOK {
		t.Errorf("rollback: %v", a)
	}
	served(t, all, "/x", "v0001")
	put("v0004")
}
