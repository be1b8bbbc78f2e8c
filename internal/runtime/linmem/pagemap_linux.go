package linmem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bits of an entry of /proc/self/pagemap.
const (
	entryPresent = 1 << 63
	entrySwapped = 1 << 62
	entryFile    = 1 << 61
)

// Categories of pages, and the ioctl that finds pages by category (Linux 6.7). Its number is the same on every architecture: read and write, 96
// bytes, 'f', 16.
const (
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5 // the kernel's shared page of zeros

	pagemapScan = 0xc0606610
)

// A region is a run of pages, as the kernel writes it.
type region struct {
	start, end uint64
	categories uint64 // 0 if read from the pagemap
}

// zero reports whether the pages are known to be the kernel's page of zeros. Untouched memory is mapped to it when it is read. In a file's mapping
// that does not prove a page clean: the kernel may have merged pages that the guest had filled with zeros.
func (r region) zero() bool { return r.categories&pageIsZero != 0 }

// scanArg is the argument of the ioctl.
type scanArg struct {
	size, flags, start, end, walkEnd uint64
	vec, vecLen, maxPages            uint64
	inverted, mask, anyOf, returned  uint64
}

const (
	regionsPerScan = 128 // the kernel allocates them for each scan, which is noticeable with 512; another scan costs 0.6 µs
	entriesPerRead = 512 // 4 KiB, which the kernel processes at a time
)

// A finder finds those pages of one memory that differ from their file.
type finder struct {
	arg     scanArg
	regions [regionsPerScan]region
	entries []byte // buffer for reading the pagemap; nil until needed

	found   []region // all dirty pages since the last reset, except those that a watched run adds; nil if unknown
	watched bool     // Watch has bound a goroutine to its thread
	faults  faults   // page faults of that thread when the watch began
	usage   unix.Rusage
}

// A pagemap is the open /proc/self/pagemap of this process.
type pagemap struct {
	fd     int
	scan   bool // the kernel has the ioctl
	faults int  // descriptor of userfaultfd, or noFaultDescriptor
	counts bool // page faults are counted for each thread
}

// openPagemap opens the pagemap once for the process and never closes it: it is the same for all memories. It can't become another process's map: a
// Go process does not fork without exec, and the descriptor is closed by exec. The pagemap's answers are tested before they are trusted.
var openPagemap = sync.OnceValues(func() (*pagemap, error) {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /proc/self/pagemap: %w", err)
	}
	faults := openFaults()
	for _, p := range []*pagemap{
		{fd: fd, scan: true, faults: faults},
		{fd: fd, scan: true, faults: noFaultDescriptor},
		{fd: fd, scan: false, faults: faults},
		{fd: fd, scan: false, faults: noFaultDescriptor},
	} {
		if err = p.check(); err == nil {
			return p, nil // if userfaultfd can't be used, one idle descriptor stays open
		}
	}
	if faults != noFaultDescriptor {
		err = errors.Join(err, unix.Close(faults))
	}
	return nil, errors.Join(err, unix.Close(fd))
})

// findPagemap returns the pagemap of this process, or nil if there is none that can be trusted.
func findPagemap() *pagemap {
	p, _ := openPagemap() // whatever the reason, the simple way still works
	return p
}

// find returns the first dirty runs of pages between two addresses, as many as the finder holds, and the address up to
// which it has looked. Both ways are needed: the scan is new (Linux 6.7), and skips what is not mapped.
// In µs, by the number of granules and of dirty pages:
//
//	           17, 3   64, 3   64, 100   1,024, 3   1,024, 500
//	scan         1.1     1.7       6.0        2.8           39
//	read         1.7     3.2       6.1         45           65
//
// Of the scan's 1.1, 0.2 are the system call, 0.4 its set-up, 0.3 entries of page tables, and 0.04 each dirty page.
func (p *pagemap) find(f *finder, start, end uint64) (runs []region, next uint64, err error) {
	if p.scan {
		return p.findByScan(f, start, end)
	}
	return p.findByRead(f, start, end)
}

func (p *pagemap) findByScan(f *finder, start, end uint64) ([]region, uint64, error) {
	f.arg = scanArg{
		size:     uint64(unsafe.Sizeof(f.arg)),
		start:    start,
		end:      end,
		vec:      uint64(uintptr(unsafe.Pointer(&f.regions))),
		vecLen:   regionsPerScan,
		inverted: pageIsFile,
		mask:     pageIsFile,                    // pages that differ from the file's,
		anyOf:    pageIsPresent | pageIsSwapped, // and that exist
		returned: pageIsPresent | pageIsSwapped | pageIsZero,
	}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p.fd), pagemapScan, uintptr(unsafe.Pointer(&f.arg)))
	if errno != 0 {
		return nil, start, fmt.Errorf("scan /proc/self/pagemap: %w", errno)
	}
	if int(n) > len(f.regions) || f.arg.walkEnd <= start || f.arg.walkEnd > end {
		return nil, start, fmt.Errorf("scan /proc/self/pagemap: %d regions up to %#x of %#x to %#x", n, f.arg.walkEnd, start, end)
	}
	return f.regions[:n], f.arg.walkEnd, nil
}

func (p *pagemap) findByRead(f *finder, start, end uint64) ([]region, uint64, error) {
	page := uint64(unix.Getpagesize())
	if f.entries == nil {
		f.entries = make([]byte, entriesPerRead*8)
	}
	entries := f.entries[:min(entriesPerRead, (end-start)/page)*8]
	n, err := unix.Pread(p.fd, entries, int64(start/page*8))
	if err != nil {
		return nil, start, fmt.Errorf("read /proc/self/pagemap: %w", err)
	}
	if n < 8 {
		return nil, start, fmt.Errorf("read /proc/self/pagemap: %w", io.ErrUnexpectedEOF)
	}
	runs, next := dirtyRuns(f.regions[:0], entries[:n/8*8], start, page)
	return runs, next, nil
}

// dirtyRuns appends the runs of dirty pages among the entries, which begin with the page at start, until runs is full. It returns the address of the
// first page that it has not examined.
func dirtyRuns(runs []region, entries []byte, start, page uint64) ([]region, uint64) {
	at := start
	for ; len(entries) >= 8; entries = entries[8:] {
		if dirty(binary.NativeEndian.Uint64(entries)) {
			if last := len(runs) - 1; last >= 0 && runs[last].end == at {
				runs[last].end += page
			} else if len(runs) == cap(runs) {
				break
			} else {
				runs = append(runs, region{start: at, end: at + page})
			}
		}
		at += page
	}
	return runs, at
}

// dirty reports whether a page may differ from what was mapped. It is clean only if it was never touched, or if it is resident and still the file's:
// a written page of a private mapping is no longer the file's. A swapped page was written once, whatever its other bits say.
func dirty(entry uint64) bool {
	switch {
	case entry&entrySwapped != 0:
		return true
	case entry&entryPresent != 0:
		return entry&entryFile == 0
	}
	return false
}

// check dirties one page of a file and one page of zeros, and returns an error unless exactly these are found: on some systems, such as emulated
// kernels, the pagemap does not tell the truth.
func (p *pagemap) check() (err error) {
	page := unix.Getpagesize()
	stored := make([]byte, 3*page)
	for n := range stored {
		stored[n] = 1
	}
	f, err := new(Store).newSlot(len(stored), p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.write(stored, 0); err != nil {
		return err
	}
	space, err := reserveSpace(6 * page)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release(space)) }()
	if err := f.overlay(space); err != nil {
		return err
	}
	if !p.faultAlone(space[:3*page]) && p.faults != noFaultDescriptor {
		return errors.New("userfaultfd refuses the mapping of a memory file")
	}
	if err := commit(space[3*page:]); err != nil {
		return err
	}
	// Pages 0 and 3 are read, 1 and 4 written, 2 and 5 left alone.
	space[page], space[4*page] = space[0]+1, space[3*page]+1
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(space))))
	var finder finder
	var found [6]bool
	for at, end := base, base+uint64(len(space)); at < end; {
		runs, next, err := p.find(&finder, at, end)
		if err != nil {
			return err
		}
		for _, run := range runs {
			for a := max(run.start, base); a < min(run.end, end); a += uint64(page) {
				found[(a-base)/uint64(page)] = true
			}
		}
		at = next
	}
	found[3] = false // untouched zeros may count as dirty once read
	if found != [6]bool{1: true, 4: true} {
		return fmt.Errorf("/proc/self/pagemap reports %v of six pages as dirty, want the second and the fifth", found)
	}
	p.counts = finder.seesFaults(&space[0], &space[2*page], &space[3*page], &space[5*page])
	return nil
}
