package linmem

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// watchable returns a memory of that many granules, half of them stored, whose dirty pages are known.
func watchable(t *testing.T, granules int) *Memory {
	t.Helper()
	if p := findPagemap(); p == nil || !p.counts {
		t.Skip("the system does not report dirty pages, or page faults")
	}
	content := make([]byte, granules*granule)
	for n := range len(content) / 2 {
		content[n] = byte(n) | 1
	}
	image, err := new(Store).NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Map(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(); err != nil {
			t.Error(err)
		}
		if err := image.Close(); err != nil {
			t.Error(err)
		}
	})
	for range 2 { // the first reset drops everything
		m.space[0]++
		m.space[m.size-1]++
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestWatchedReset takes the pagemap away, so that a reset fails if it searches for dirty pages.
// Proves: Nothing is left of a call
func TestWatchedReset(t *testing.T) {
	t.Parallel()
	page := unix.Getpagesize()
	for _, c := range []struct {
		name  string
		do    func(m *Memory)
		looks bool
	}{
		{"nothing", func(*Memory) {}, false},
		{"writes to the pages that were dirty before", func(m *Memory) { m.space[1]++; m.space[m.size-page]++ }, false},
		{"a write to one of the dirty pages", func(m *Memory) { m.space[page-1]++ }, false},
		{"a write to a stored page that was clean", func(m *Memory) { m.space[page]++ }, true},
		{"a write to a page of zeros that was clean", func(m *Memory) { m.space[m.size-page-1]++ }, true},
		{"a write to a page that was read first", func(m *Memory) { _ = m.space[page] + m.space[2*page]; m.space[2*page]++ }, true},
		{"all", func(m *Memory) { clear(m.Bytes()) }, true},
		{"grown", func(m *Memory) { m.Grow(41 * granule) }, false},
		{"grown, and written there", func(m *Memory) { m.Grow(41 * granule)[40*granule]++ }, true},
		{"a write after Unwatch", func(m *Memory) { m.Unwatch(); m.space[1]++ }, true},
		{"a write by another goroutine", func(m *Memory) {
			m.Unwatch()
			done := make(chan struct{})
			go func() { runtime.LockOSThread(); m.space[page]++; close(done) }()
			<-done
		}, true},
		{"paused", func(m *Memory) { m.space[1]++; pause(m); m.space[1]++ }, false},
		{"a write before a pause", func(m *Memory) { m.space[page]++; pause(m) }, true},
		{"a write after a pause", func(m *Memory) { pause(m); m.space[page]++ }, true},
		{"a write between two pauses", func(m *Memory) { pause(m); m.space[page]++; pause(m) }, true},
		{"a write to a dropped page", func(m *Memory) { _ = m.drop(0, m.size); m.space[0]++ }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !c.looks {
				testkit.SkipEmulated(t, "translating code causes page faults, so Reset searches each time")
			}
			m := watchable(t, 40)
			real := m.image.slot.pagemap
			m.image.slot.pagemap = &pagemap{fd: -1, scan: true, counts: true, faults: noFaultDescriptor}
			m.Watch()
			c.do(m)
			_, err := m.Reset()
			m.image.slot.pagemap = real
			if looked := err != nil; looked != c.looks {
				t.Errorf("Reset looked for dirty pages: got %v (%v), want %v", looked, err, c.looks)
			}
			if !c.looks && !m.Equal() {
				t.Error("the memory is not restored")
			}
		})
	}
}

// pause lets other goroutines, and another thread, run for a moment.
func pause(m *Memory) {
	watched := m.Pause()
	runtime.Gosched()
	if watched {
		m.Resume()
	}
}

// TestWatch does everything in random order, with watching and without.
// Proves: Nothing is left of a call
func TestWatch(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	m := watchable(t, 100)
	page := unix.Getpagesize()
	random := rand.New(rand.NewPCG(1, 2))
	often := []int{0, 7, 300, 900}
	quiet := 0
	for turn := range 3000 {
		if random.IntN(10) > 0 {
			m.Watch()
		}
		for range random.IntN(4) {
			m.space[often[random.IntN(len(often))]*page+random.IntN(page)]++
		}
		if random.IntN(3) == 0 {
			size := m.size
			b := m.Grow(uint64(size + (1+random.IntN(3))*granule))
			if sum := read(b[size:]); sum != 0 {
				t.Fatalf("turn %d: the part that it grew by holds %d", turn, sum)
			}
			b[size]++
			b[size+random.IntN(3)*page]++
		}
		switch random.IntN(30) {
		case 0:
			m.Bytes()[random.IntN(m.size)]++
		case 1:
			_ = read(m.Bytes()[random.IntN(m.size):])
		case 2:
			_ = unix.Madvise(m.Bytes(), unix.MADV_PAGEOUT)
		case 3:
			m.Unwatch()
			runtime.Gosched()
		case 4:
			runtime.GC()
		case 7, 8:
			pause(m)
		case 5:
			clear(m.Bytes()[random.IntN(m.size):])
		case 6:
			if _, err := m.Resident(); err != nil {
				t.Fatal(err)
			}
		}
		known := m.finder.found != nil && m.finder.watched
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if known {
			quiet++
		}
		if m.finder.watched {
			t.Fatal("Reset left the goroutine bound")
		}
		if !m.Equal() {
			t.Fatalf("turn %d: the memory is not restored", turn)
		}
	}
	if quiet < 1000 && !testkit.Emulated() { // an emulator's own page faults make Reset search
		t.Errorf("%d of 3000 runs were watched to their end, want most", quiet)
	}
}

func read(b []byte) (sum int) {
	for _, x := range b {
		sum += int(x)
	}
	return sum
}

// TestWatchOfManyPages has more dirty pages, no two of them adjacent, than one search returns. So the pages that the last search returned are not
// all of the dirty ones.
func TestWatchOfManyPages(t *testing.T) {
	t.Parallel()
	m := watchable(t, 40)
	page := unix.Getpagesize()
	for turn := range 5 {
		m.Watch()
		for at := 0; at < 2*(regionsPerScan+10)*page; at += 2 * page {
			m.space[at]++
		}
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if !m.Equal() {
			t.Fatalf("turn %d: the memory is not restored", turn)
		}
	}
}

// TestWatchForgetsRareCalls has one call that writes much and many that write little, all of them watched.
func TestWatchForgetsRareCalls(t *testing.T) {
	t.Parallel()
	m := watchable(t, 40)
	clear(m.Grow(60 * granule))
	for range ageEvery + 5 {
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		m.Watch()
		m.space[0]++
	}
	if _, err := m.Reset(); err != nil {
		t.Fatal(err)
	}
	if n, err := m.Resident(); n != unix.Getpagesize() || err != nil {
		t.Errorf("Resident: got %d, %v; want the one page of the calls since", n, err)
	}
}

// TestFewPagesStay has one call that writes a few pages and many that write one. Forgetting eight pages would cost more than keeping them.
func TestFewPagesStay(t *testing.T) {
	t.Parallel()
	page := unix.Getpagesize()
	for _, c := range []struct{ written, stay int }{{young, young}, {young + page, page}} {
		m := watchable(t, 40)
		m.Watch()
		for at := 0; at < c.written-page; at += page { // the last page is dirty in watchable
			m.space[at]++
		}
		for range 3 * ageEvery {
			if _, err := m.Reset(); err != nil {
				t.Fatal(err)
			}
			m.Watch()
			m.space[0]++
		}
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if n, err := m.Resident(); n != c.stay || err != nil {
			t.Errorf("Resident after a call that wrote %d bytes: got %d, %v; want %d", c.written, n, err, c.stay)
		}
		if !m.Equal() { // it reads everything, so it comes last
			t.Fatal("the memory is not restored")
		}
	}
}

// TestReadsAreForgotten has one call that reads pages that were never written. Scans must not examine many of them, and none of them forever.
func TestReadsAreForgotten(t *testing.T) {
	t.Parallel()
	if p := findPagemap(); p == nil || !p.scan {
		t.Skip("the system does not report pages that were only read")
	}
	page := unix.Getpagesize()
	for _, c := range []struct {
		name               string
		size, step, resets int
		left               int // bytes at most, in addition to what the calls write
	}{
		{"much", 40*granule + 3*keepResident, page, 1, keepResident},
		{"much, in every other page", 40*granule + 3*keepResident, 2 * page, 1, keepResident},
		{"little, within the declared memory", 40 * granule, page, ageEvery, 0},
		{"little, in every other page", 40 * granule, 2 * page, ageEvery, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := watchable(t, 40)
			scanned := func() (sum int) {
				for at, end := m.base(), m.base()+uint64(m.reach); at < end; {
					runs, next, err := m.image.slot.pagemap.find(&m.finder, at, end)
					if err != nil {
						t.Fatal(err)
					}
					for _, run := range runs {
						sum += int(run.end - run.start)
					}
					at = next
				}
				m.finder.found = nil
				return sum
			}
			b := m.Grow(uint64(c.size))
			zeros := b[len(m.image.stored) : c.size-page] // the last page is dirty in watchable
			sum := 0
			for at := 0; at < len(zeros); at += c.step {
				sum += int(zeros[at])
			}
			b[c.size-1]++
			if got := scanned(); sum != 0 || got < len(zeros)*page/c.step {
				t.Fatalf("%d bytes are scanned, and the bytes that were read add up to %d: the test shows nothing", got, sum)
			}
			for range c.resets {
				m.space[0]++
				if _, err := m.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			if got := scanned(); got > c.left+2*page {
				t.Errorf("%d bytes are scanned after %d resets, want %d at most", got, c.resets, c.left+2*page)
			}
			if !m.Equal() {
				t.Error("the memory is not restored")
			}
		})
	}
}

// TestBlank has pages of zeros in places where the kernel itself puts them, and in places where it may have merged a guest's pages.
func TestBlank(t *testing.T) {
	t.Parallel()
	m := watchable(t, 40)
	page, stored := uint64(unix.Getpagesize()), uint64(len(m.image.stored))
	for _, c := range []struct {
		name       string
		from       uint64
		categories uint64
		want       bool
	}{
		{"behind what is stored", stored, pageIsPresent | pageIsZero, true},
		{"written behind what is stored", stored, pageIsPresent, false},
		{"in what is stored", 0, pageIsPresent | pageIsZero, false},
		{"across its end", stored - page, pageIsPresent | pageIsZero, false},
	} {
		if got := m.blank(region{m.base() + c.from, m.base() + c.from + 2*page, c.categories}); got != c.want {
			t.Errorf("zeros %s: blank: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestUncountedFaults has a counter that does not see the faults in question.
func TestUncountedFaults(t *testing.T) {
	t.Parallel()
	var f finder
	touched := make([]byte, 1)
	touched[0]++
	if f.seesFaults(&touched[0], &touched[0], &touched[0]) {
		t.Error("writes that don't fault were taken for counted faults")
	}
}
