package supervisor

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// firstSocket is the descriptor of the first socket.
	firstSocket = 3
	// maxSockets is how many sockets a supervisor may give.
	maxSockets = 64
)

// listeners returns the sockets that, according to the environment, are for this process. All are checked before one is used: if the environment is
// wrong, the descriptors belong to something else.
func listeners() ([]net.Listener, error) {
	value := os.Getenv(countVariable)
	if value == "" || os.Getenv(pidVariable) != strconv.Itoa(os.Getpid()) {
		return nil, nil // the sockets are for an earlier process
	}
	count, err := strconv.Atoi(value)
	if err != nil || count < 0 || count > maxSockets {
		return nil, fmt.Errorf("%s is %q, which is not a number of sockets up to %d: unset it, or start the server through its socket unit", countVariable, text.Short(value), maxSockets)
	}
	names := strings.Split(os.Getenv(namesVariable), ":")
	name := func(i int) string {
		if i < len(names) && names[i] != "" {
			return text.Short(names[i])
		}
		return "without a name"
	}
	for i := range count {
		listens, err := syscall.GetsockoptInt(firstSocket+i, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
		if err != nil {
			return nil, fmt.Errorf("descriptor %d (%s), which is a socket according to %s: %w", firstSocket+i, name(i), countVariable, err)
		}
		if listens == 0 {
			return nil, fmt.Errorf("the socket %d (%s) of the supervisor does not listen: give it ListenStream= with a port or a path, and no Accept=", firstSocket+i, name(i))
		}
	}
	var all []net.Listener
	for i := range count {
		file := os.NewFile(uintptr(firstSocket+i), name(i))
		l, err := net.FileListener(file)
		_ = file.Close() // the listener has its own copy of the descriptor, which no other process inherits
		if err != nil {
			return all, fmt.Errorf("take the socket %d (%s) of the supervisor: %w", firstSocket+i, name(i), err)
		}
		all = append(all, l)
		if network := l.Addr().Network(); network != "tcp" && network != "unix" {
			return all, fmt.Errorf("the socket %d (%s) of the supervisor is one of %s: give it ListenStream= with a port or a path", firstSocket+i, name(i), network)
		}
	}
	return all, nil
}
