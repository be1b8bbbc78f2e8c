// Package cluster runs NATS nodes with JetStream, each in a separate process, so that their costs can be measured separately.
package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Command is the first argument of a program that should run Child.
const Command = "node"

// A Node has the settings of a process that runs a node.
type Node struct {
	Name      string
	Port      int
	Route     int    // the port for the other nodes
	Routes    []int  // the ports of all nodes; with only one there is no cluster
	Through   bool   // routes lead through gates, and nodes find each other in no other way
	Directory string // the folder of the node's data
}

// Used has what a node has used since it was started, and what it holds now.
type Used struct {
	Processor         time.Duration
	Resident          int64 // bytes
	In, Out           int64 // messages from and to clients and other nodes
	InBytes, OutBytes int64
	Connections       int
}

// Less returns what was used since before, and what the node holds now.
func (u Used) Less(before Used) Used {
	u.Processor -= before.Processor
	u.In -= before.In
	u.Out -= before.Out
	u.InBytes -= before.InBytes
	u.OutBytes -= before.OutBytes
	return u
}

// Child runs a node until its input ends. It answers each line of input with what it has used, as JSON.
func Child(arguments []string, out io.Writer) error {
	if len(arguments) != 1 {
		return errors.New("a node's settings are one argument")
	}
	var n Node
	if err := json.Unmarshal([]byte(arguments[0]), &n); err != nil {
		return err
	}
	o := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, JetStream: true, StoreDir: n.Directory, NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 8 << 30,
	}
	if len(n.Routes) > 1 {
		o.Cluster = server.ClusterOpts{Name: "bench", Host: "127.0.0.1", Port: n.Route}
		for _, port := range n.Routes {
			o.Routes = append(o.Routes, server.RoutesFromStr("nats://127.0.0.1:"+strconv.Itoa(port))...)
		}
		if n.Through {
			o.Cluster.NoAdvertise, o.Cluster.Advertise = true, "127.0.0.1:1"
		}
	}
	node, err := server.NewServer(o)
	if err != nil {
		return err
	}
	node.Start()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		v, err := node.Varz(nil)
		if err != nil {
			return err
		}
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return err
		}
		err = json.NewEncoder(out).Encode(Used{
			Processor: time.Duration(used.Utime.Nano() + used.Stime.Nano()), Resident: v.Mem, In: v.InMsgs, Out: v.OutMsgs,
			InBytes: v.InBytes, OutBytes: v.OutBytes, Connections: v.Connections,
		})
		if err != nil {
			return err
		}
	}
	node.Shutdown()
	node.WaitForShutdown()
	return nil
}

// A Cluster is a set of nodes. It is not safe for concurrent use.
type Cluster struct {
	nodes     []Node
	processes []*process
	log       io.Writer
}

type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

// Start starts nodes with their data in a directory, and waits until they accept writes. Their errors are written to log.
func Start(ctx context.Context, nodes int, directory string, log io.Writer) (*Cluster, error) {
	return StartThrough(ctx, nodes, directory, log, nil)
}

// A Way returns the port through which one node reaches another, which listens at the given port.
type Way func(from, to, port int) (int, error)

// StartThrough is Start with ways between the nodes. Clients have to use the nodes' own addresses, or others that lead there.
func StartThrough(ctx context.Context, nodes int, directory string, log io.Writer, way Way) (*Cluster, error) {
	ports, err := freePorts(2 * nodes)
	if err != nil {
		return nil, err
	}
	c := &Cluster{processes: make([]*process, nodes), log: log}
	for i := range nodes {
		n := Node{Name: fmt.Sprint("node", i), Port: ports[i], Route: ports[nodes+i], Through: way != nil, Directory: fmt.Sprintf("%s/node%d", directory, i)}
		for j, port := range ports[nodes:] {
			if way != nil && i != j {
				if port, err = way(i, j, port); err != nil {
					c.Close()
					return nil, err
				}
			}
			n.Routes = append(n.Routes, port)
		}
		c.nodes = append(c.nodes, n)
		if err := c.Run(i); err != nil {
			c.Close()
			return nil, err
		}
	}
	if err := c.Wait(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Run starts a node that is not running, with its old data.
func (c *Cluster) Run(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return c.RunAs(i, self)
}

// RunAs is Run with another program, which runs Child like this one.
func (c *Cluster) RunAs(i int, program string) error {
	text, err := json.Marshal(c.nodes[i])
	if err != nil {
		return err
	}
	p := &process{command: exec.Command(program, Command, string(text))}
	p.command.Stderr = c.log
	if p.input, err = p.command.StdinPipe(); err != nil {
		return err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	p.output = bufio.NewReader(output)
	if err := p.command.Start(); err != nil {
		return err
	}
	c.processes[i] = p
	return nil
}

// Kill ends a node at once, as SIGKILL does.
func (c *Cluster) Kill(i int) {
	if p := c.processes[i]; p != nil {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
		c.processes[i] = nil
	}
}

// Process returns the process of a node, or nil if it does not run.
func (c *Cluster) Process(i int) *os.Process {
	if p := c.processes[i]; p != nil {
		return p.command.Process
	}
	return nil
}

// Wait waits until the nodes accept writes.
func (c *Cluster) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := c.writes(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the NATS nodes accept no writes: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// writes finds out whether there is a leader by making a stream with a copy on each node.
func (c *Cluster) writes(ctx context.Context) error {
	conn, err := nats.Connect(c.URL(), nats.MaxReconnects(0))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "ready", Subjects: []string{"ready"}, Replicas: len(c.nodes)}); err != nil {
		return err
	}
	return js.DeleteStream(ctx, "ready")
}

// Lead makes a node the leader of a stream, and returns when it is.
func (c *Cluster) Lead(ctx context.Context, stream string, i int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := nats.Connect(c.URL())
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := conn.JetStream(nats.MaxWait(2 * time.Second))
	if err != nil {
		return err
	}
	for {
		info, err := js.StreamInfo(stream)
		if err == nil && info.Cluster != nil && info.Cluster.Leader == c.nodes[i].Name {
			return nil
		}
		_, _ = conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, c.nodes[i].Name), time.Second) // it will be asked again
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not lead %s: %w", c.nodes[i].Name, stream, errors.Join(err, ctx.Err()))
		case <-time.After(time.Second): // until the node is elected
		}
	}
}

// URL returns the addresses of the nodes.
func (c *Cluster) URL() string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", n.Port))
	}
	return "nats://" + strings.Join(all, ",")
}

// Host returns the address of a node.
func (c *Cluster) Host(i int) string { return fmt.Sprintf("127.0.0.1:%d", c.nodes[i].Port) }

// Used returns the sum of what the running nodes have used. Connections are those of clients.
func (c *Cluster) Used() (sum Used, err error) {
	for i, p := range c.processes {
		if p == nil {
			continue
		}
		if _, err := io.WriteString(p.input, "\n"); err != nil {
			return sum, fmt.Errorf("node %d: %w", i, err)
		}
		line, err := p.output.ReadBytes('\n')
		if err != nil {
			return sum, fmt.Errorf("node %d: %w", i, err)
		}
		var u Used
		if err := json.Unmarshal(line, &u); err != nil {
			return sum, err
		}
		sum.Processor += u.Processor
		sum.Resident += u.Resident
		sum.In += u.In
		sum.Out += u.Out
		sum.InBytes += u.InBytes
		sum.OutBytes += u.OutBytes
		sum.Connections += u.Connections
	}
	return sum, nil
}

// Close ends all nodes.
func (c *Cluster) Close() {
	for i := range c.processes {
		c.Kill(i)
	}
}

// freePorts returns ports of this machine on which nobody listens.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
