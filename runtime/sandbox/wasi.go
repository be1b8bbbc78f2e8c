package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"time"
)

// wasiModule is the import module of WASI preview 1.
const wasiModule = "wasi_snapshot_preview1"

// The WASI error numbers that are used here.
const (
	wasiSuccess    = 0
	wasiBadF       = 8
	wasiInval      = 28
	wasiNotSup     = 58
	wasiPipe       = 70 // ESPIPE: this cannot seek
	wasiNotCapable = 76
)

// wasi is WASI preview 1 with nothing granted: stdin, stdout and stderr, clocks, randomness, and no files, arguments,
// environment or sockets. It keeps no state: the three file descriptors are always open.
type wasi struct{ begun time.Time }

// funcs returns all functions of the preview. What needs a grant answers with an error number.
func (w wasi) funcs() []hostFunc {
	type body = func(*call, guestMemory, []uint64)
	deny := func(errno uint64) body {
		return func(_ *call, _ guestMemory, stack []uint64) { stack[0] = errno }
	}
	// on3 answers for the three descriptors that are open; any other is a bad one.
	on3 := func(errno uint64) body {
		return func(_ *call, _ guestMemory, stack []uint64) {
			if uint32(stack[0]) > 2 {
				stack[0] = wasiBadF
				return
			}
			stack[0] = errno
		}
	}
	noPath := deny(wasiNotCapable)
	list := []struct {
		name, params string
		call         body
	}{
		{"args_get", "ii", deny(wasiSuccess)},
		{"args_sizes_get", "ii", zeroSizes},
		{"clock_res_get", "ii", clockResolution},
		{"clock_time_get", "iIi", w.clockTime},
		{"environ_get", "ii", deny(wasiSuccess)},
		{"environ_sizes_get", "ii", zeroSizes},
		{"fd_advise", "iIIi", on3(wasiPipe)},
		{"fd_allocate", "iII", on3(wasiNotSup)},
		{"fd_close", "i", on3(wasiSuccess)},
		{"fd_datasync", "i", on3(wasiSuccess)},
		{"fd_fdstat_get", "ii", fdStat},
		{"fd_fdstat_set_flags", "ii", on3(wasiSuccess)},
		{"fd_fdstat_set_rights", "iII", on3(wasiNotCapable)},
		{"fd_filestat_get", "ii", fileStat},
		{"fd_filestat_set_size", "iI", on3(wasiInval)},
		{"fd_filestat_set_times", "iIIi", on3(wasiNotCapable)},
		{"fd_pread", "iiiIi", on3(wasiPipe)},
		{"fd_prestat_dir_name", "iii", deny(wasiBadF)},
		{"fd_prestat_get", "ii", deny(wasiBadF)},
		{"fd_pwrite", "iiiIi", on3(wasiPipe)},
		{"fd_read", "iiii", fdRead},
		{"fd_readdir", "iiiIi", on3(wasiNotCapable)},
		{"fd_renumber", "ii", on3(wasiNotSup)},
		{"fd_seek", "iIii", on3(wasiPipe)},
		{"fd_sync", "i", on3(wasiSuccess)},
		{"fd_tell", "ii", on3(wasiPipe)},
		{"fd_write", "iiii", fdWrite},
		{"path_create_directory", "iii", noPath},
		{"path_filestat_get", "iiiii", noPath},
		{"path_filestat_set_times", "iiiiIIi", noPath},
		{"path_link", "iiiiiii", noPath},
		{"path_open", "iiiiiIIii", noPath},
		{"path_readlink", "iiiiii", noPath},
		{"path_remove_directory", "iii", noPath},
		{"path_rename", "iiiiii", noPath},
		{"path_symlink", "iiiii", noPath},
		{"path_unlink_file", "iii", noPath},
		{"poll_oneoff", "iiii", w.poll},
		{"proc_raise", "i", deny(wasiNotSup)},
		{"random_get", "ii", randomGet},
		{"sched_yield", "", schedYield},
		{"sock_accept", "iii", deny(wasiBadF)},
		{"sock_recv", "iiiiii", deny(wasiBadF)},
		{"sock_send", "iiiii", deny(wasiBadF)},
		{"sock_shutdown", "ii", deny(wasiBadF)},
	}
	funcs := []hostFunc{{wasiModule, "proc_exit", "i", "", procExit}}
	for _, f := range list {
		funcs = append(funcs, hostFunc{wasiModule, f.name, f.params, "i", f.call})
	}
	return funcs
}

func procExit(_ *call, _ guestMemory, stack []uint64) {
	panic(&exit{uint32(stack[0])})
}

func schedYield(_ *call, _ guestMemory, stack []uint64) {
	runtime.Gosched()
	stack[0] = wasiSuccess
}

// zeroSizes tells that there are no arguments, or no environment.
func zeroSizes(_ *call, mem guestMemory, stack []uint64) {
	mem.put32(stack[0], 0)
	mem.put32(stack[1], 0)
	stack[0] = wasiSuccess
}

// The clocks.
const (
	clockReal      = 0
	clockMonotonic = 1
	clockProcess   = 2
	clockThread    = 3
)

// now reads a clock in nanoseconds. CPU time is not told; the time that has passed stands in for it.
func (w wasi) now(id uint32) (nanos int64, ok bool) {
	switch id {
	case clockReal:
		return time.Now().UnixNano(), true
	case clockMonotonic, clockProcess, clockThread:
		return int64(time.Since(w.begun)), true
	}
	return 0, false
}

func clockResolution(_ *call, mem guestMemory, stack []uint64) {
	if uint32(stack[0]) > clockThread {
		stack[0] = wasiInval
		return
	}
	mem.put64(stack[1], 1)
	stack[0] = wasiSuccess
}

func (w wasi) clockTime(_ *call, mem guestMemory, stack []uint64) {
	nanos, ok := w.now(uint32(stack[0]))
	if !ok {
		stack[0] = wasiInval
		return
	}
	mem.put64(stack[2], uint64(nanos))
	stack[0] = wasiSuccess
}

// The rights that stdin, stdout and stderr have.
const (
	rightRead     = 1 << 1
	rightSetFlags = 1 << 3
	rightWrite    = 1 << 6
	rightStat     = 1 << 21
	rightPoll     = 1 << 27
)

// fdStat describes a descriptor as of unknown type, which is what WASI calls a pipe: a terminal would have
// libraries flush every line.
func fdStat(_ *call, mem guestMemory, stack []uint64) {
	fd := uint32(stack[0])
	if fd > 2 {
		stack[0] = wasiBadF
		return
	}
	rights := uint64(rightSetFlags | rightStat | rightPoll)
	if fd == 0 {
		rights |= rightRead
	} else {
		rights |= rightWrite
	}
	var stat [24]byte
	binary.LittleEndian.PutUint64(stat[8:], rights)
	mem.put(stack[1], stat[:])
	stack[0] = wasiSuccess
}

func fileStat(_ *call, mem guestMemory, stack []uint64) {
	if uint32(stack[0]) > 2 {
		stack[0] = wasiBadF
		return
	}
	var stat [64]byte
	binary.LittleEndian.PutUint64(stat[24:], 1) // one link
	mem.put(stack[1], stat[:])
	stack[0] = wasiSuccess
}

// maxVectors is the most buffers in one read or write (IOV_MAX elsewhere), and maxChunk the most bytes of a log
// stream or of randomness that are handled in one go. Both keep what a host function does between two looks at
// the call's context short.
const (
	maxVectors = 1024
	maxChunk   = 64 << 10
)

// fdRead gives a plain WASI program its input, and a reactor nothing.
func fdRead(c *call, mem guestMemory, stack []uint64) {
	if fd := uint32(stack[0]); fd != 0 {
		stack[0] = wasiBadF
		return
	}
	if uint32(stack[2]) > maxVectors {
		stack[0] = wasiInval
		return
	}
	c.work(workVector * int(uint32(stack[2])))
	var rest []byte
	if c.command {
		rest = c.visible()[c.read:]
	}
	total := 0
	for vectors := mem.view(stack[1], uint64(uint32(stack[2]))*8); len(vectors) > 0 && len(rest) > total; vectors = vectors[8:] {
		ptr, length := vector(vectors)
		total += copy(mem.view(ptr, length), rest[total:])
	}
	c.work(total / bytesCopy)
	c.read += total
	mem.put32(stack[3], uint32(total))
	stack[0] = wasiSuccess
}

// fdWrite takes a plain WASI program's output from descriptor 1, and log lines otherwise. Of log lines it takes
// maxChunk bytes at a time; the guest comes back with the rest.
func fdWrite(c *call, mem guestMemory, stack []uint64) {
	fd := uint32(stack[0])
	if fd != 1 && fd != 2 {
		stack[0] = wasiBadF
		return
	}
	if uint32(stack[2]) > maxVectors {
		stack[0] = wasiInval
		return
	}
	c.work(workVector * int(uint32(stack[2])))
	total := 0
	for vectors := mem.view(stack[1], uint64(uint32(stack[2]))*8); len(vectors) > 0; vectors = vectors[8:] {
		ptr, length := vector(vectors)
		piece := mem.view(ptr, length)
		if fd == 1 && c.command {
			c.write(piece, false)
			total += len(piece)
			continue
		}
		piece = piece[:min(len(piece), maxChunk-total)]
		c.work(workStream * len(piece))
		c.lines.stream(c.ctx, fd, piece)
		total += len(piece)
		if total == maxChunk {
			break
		}
	}
	mem.put32(stack[3], uint32(total))
	stack[0] = wasiSuccess
}

// vector reads the first of a list of buffers.
func vector(list []byte) (ptr, length uint64) {
	return uint64(binary.LittleEndian.Uint32(list)), uint64(binary.LittleEndian.Uint32(list[4:]))
}

func randomGet(c *call, mem guestMemory, stack []uint64) {
	rest := mem.view(stack[0], stack[1])
	for len(rest) > 0 {
		piece := rest[:min(len(rest), maxChunk)]
		c.work(workRandom * len(piece))
		rand.Read(piece) // never fails
		rest = rest[len(piece):]
	}
	stack[0] = wasiSuccess
}

// A subscription and an event of poll_oneoff take that many bytes.
const (
	subscriptionSize = 48
	eventSize        = 32
)

// The kinds of subscriptions, and the flag of a clock's that makes its timeout a moment.
const (
	pollClock    = 0
	pollRead     = 1
	pollWrite    = 2
	pollAbsolute = 1
)

// poll waits for the first of the guest's subscriptions. Descriptors are always ready; for a clock it sleeps, until
// the call has to end at most.
func (w wasi) poll(c *call, mem guestMemory, stack []uint64) {
	n := uint64(uint32(stack[2]))
	if n == 0 || n > maxVectors {
		stack[0] = wasiInval
		return
	}
	c.work(int(n) * workEvent)
	// A copy, because the guest may have the events written over the subscriptions.
	subscriptions := append([]byte(nil), mem.view(stack[0], n*subscriptionSize)...)
	events := mem.view(stack[1], n*eventSize)
	begun := time.Now()
	occurred := w.events(subscriptions, events[:0], 0)
	for len(occurred) == 0 {
		c.memory.Unwatch()
		timer := time.NewTimer(min(w.firstClock(subscriptions, time.Since(begun)), time.Until(c.deadline)))
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		case <-c.engine.stop.Done():
		}
		timer.Stop()
		c.look(time.Now())
		occurred = w.events(subscriptions, events[:0], time.Since(begun))
	}
	mem.put32(stack[3], uint32(len(occurred)/eventSize))
	stack[0] = wasiSuccess
}

// events appends to list the events that have occurred when the guest has slept for that long.
func (w wasi) events(subscriptions, list []byte, slept time.Duration) []byte {
	for ; len(subscriptions) > 0; subscriptions = subscriptions[subscriptionSize:] {
		errno := uint16(wasiSuccess)
		ready := uint64(0) // bytes that can be read or written
		kind := subscriptions[8]
		switch kind {
		case pollClock:
			wait, ok := w.wait(subscriptions, slept)
			if ok && wait > 0 {
				continue
			} else if !ok {
				errno = wasiInval
			}
		case pollRead, pollWrite:
			ready = 1
			if fd := binary.LittleEndian.Uint32(subscriptions[16:]); fd > 2 || (fd == 0) != (kind == pollRead) {
				errno, ready = wasiBadF, 0
			}
		default:
			errno = wasiInval
		}
		var event [eventSize]byte
		copy(event[:8], subscriptions) // the guest's own mark
		binary.LittleEndian.PutUint16(event[8:], errno)
		event[10] = kind
		binary.LittleEndian.PutUint64(event[16:], ready)
		list = append(list, event[:]...)
	}
	return list
}

// firstClock is how long it still is until the first clock of subscriptions, which has nothing but valid clocks.
func (w wasi) firstClock(subscriptions []byte, slept time.Duration) time.Duration {
	first := time.Duration(1<<63 - 1)
	for ; len(subscriptions) > 0; subscriptions = subscriptions[subscriptionSize:] {
		wait, _ := w.wait(subscriptions, slept)
		first = min(first, wait)
	}
	return first
}

// wait is how long it is until the clock of the first subscription, where the guest has slept for that long.
func (w wasi) wait(subscription []byte, slept time.Duration) (time.Duration, bool) {
	timeout := binary.LittleEndian.Uint64(subscription[24:])
	nanos := int64(min(timeout, 1<<63-1))
	now, ok := w.now(binary.LittleEndian.Uint32(subscription[16:]))
	if ok && binary.LittleEndian.Uint16(subscription[40:])&pollAbsolute != 0 {
		return time.Duration(nanos - now), true // now is not negative, so this does not overflow
	}
	return time.Duration(nanos) - slept, ok
}
