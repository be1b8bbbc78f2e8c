package nats_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A cluster is one or several NATS nodes with JetStream, in this process.
type cluster struct {
	nodes   []*server.Server
	options []*server.Options
}

// start starts nodes, which stop when the test ends. change may change the options of each.
func start(t testing.TB, nodes int, change func(o *server.Options)) *cluster {
	t.Helper()
	c := &cluster{}
	var routes []*url.URL
	for range nodes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", freePort())})
	}
	for i := range nodes {
		o := &server.Options{
			ServerName: fmt.Sprint("node", i), Host: "127.0.0.1", Port: freePort(),
			JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
			JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 4 << 30,
		}
		if nodes > 1 {
			var port int
			fmt.Sscanf(routes[i].Port(), "%d", &port)
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
			o.Routes = routes
		}
		if change != nil {
			change(o)
		}
		c.options = append(c.options, o)
		c.nodes = append(c.nodes, nil)
		c.run(t, i)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	c.wait(t)
	return c
}

// run starts a node with its old data.
func (c *cluster) run(t testing.TB, i int) {
	t.Helper()
	node, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[i] = node
	node.Start()
}

// stop ends a node.
func (c *cluster) stop(i int) {
	if c.nodes[i] != nil {
		c.nodes[i].Shutdown()
		c.nodes[i].WaitForShutdown()
		c.nodes[i] = nil
	}
}

// wait waits until all nodes accept connections, and a cluster has a leader.
func (c *cluster) wait(t testing.TB) {
	t.Helper()
	eventually(t, "the nodes are ready", func() bool {
		leads := len(c.nodes) == 1
		for _, n := range c.nodes {
			if n != nil && !n.ReadyForConnections(10*time.Millisecond) {
				return false
			}
			leads = leads || n != nil && n.JetStreamIsLeader()
		}
		return leads
	})
}

// url returns the addresses of the nodes.
func (c *cluster) url() string {
	var all []string
	for _, o := range c.options {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", o.Port))
	}
	return "nats://" + strings.Join(all, ",")
}

// lastPort is the port that freePort returned last.
var lastPort atomic.Int64

func init() { lastPort.Store(rand.Int64N(1 << 20)) }

// freePort returns a free port below 32768: Linux uses higher ports for outgoing connections.
func freePort() int {
	for {
		port := 20000 + int(lastPort.Add(1)%12000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(60 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("this did not become true: %s", what)
		}
	}
}
