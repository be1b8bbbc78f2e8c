package linmem_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// files counts the open descriptors of images.
func files(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.Contains(target, "toolsrv-image") {
			n++
		}
	}
	return n
}

// mappings counts the mappings of the process, and how many of them are of images' files.
func mappings(t *testing.T) (all, images int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("\n")), bytes.Count(maps, []byte("toolsrv-image"))
}

// TestLeaks is not parallel, since it counts the process's resources.
func TestLeaks(t *testing.T) {
	content := filled(4*granule, func(b []byte) { sprinkle(b[:2*granule], 1) })
	const memories = 2000
	filesBefore := files(t)
	allBefore, imagesBefore := mappings(t)
	image, err := new(linmem.Store).NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	var all []*linmem.Memory
	for range memories {
		m, err := image.Map(64 << 20)
		if err != nil {
			t.Fatal(err)
		}
		m.Bytes()[0]++
		m.Bytes()[3*granule]++
		all = append(all, m)
	}
	if got := files(t) - filesBefore; got > 1 {
		t.Errorf("%d memories of one image take %d descriptors, want 1", memories, got)
	}
	if got, _ := mappings(t); got-allBefore > all[0].Mappings()*memories+50 || all[0].Mappings() > 3 { // Go's heap may have grown meanwhile
		t.Errorf("%d memories take %d mappings, want %d each", memories, got-allBefore, all[0].Mappings())
	}
	for _, m := range all {
		free(t, m)
	}
	if err := image.Close(); err != nil {
		t.Fatal(err)
	}
	if got := files(t) - filesBefore; got != 0 {
		t.Errorf("%d descriptors leaked", got)
	}
	if got, images := mappings(t); got-allBefore > 50 || images != imagesBefore {
		t.Errorf("%d mappings leaked, %d of them of images", got-allBefore, images-imagesBefore)
	}
}

func TestReservationIsNotResident(t *testing.T) {
	t.Parallel()
	m, err := linmem.New(4 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer free(t, m)
	b := m.Grow(1 << 30)
	if b == nil {
		t.Fatal("Grow to 1 GiB: got nil")
	}
	b[0], b[len(b)-1] = 1, 1
	if n, err := m.Resident(); n != 2*os.Getpagesize() || err != nil {
		t.Errorf("Resident: got %d, %v; want two pages", n, err)
	}
}

// TestOutOfAddressSpace runs in a process of its own, because it uses up the address space there.
func TestOutOfAddressSpace(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the test can't start itself again, and limits of address space apply to the emulator, too")
	if os.Getenv("LINMEM_OUT_OF_SPACE") == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOutOfAddressSpace$", "-test.v")
		child.Env = append(os.Environ(), "LINMEM_OUT_OF_SPACE=1")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestOutOfAddressSpace")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	image, err := new(linmem.Store).NewImage(filled(granule, func(b []byte) { b[0] = 1 }))
	if err != nil {
		t.Fatal(err)
	}
	small, err := image.Map(granule)
	if err != nil {
		t.Fatal(err)
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &now); err != nil {
		t.Fatal(err)
	}
	var statm struct{ pages uint64 }
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	for _, digit := range strings.Fields(string(text))[0] {
		statm.pages = statm.pages*10 + uint64(digit-'0')
	}
	limit := unix.Rlimit{Cur: statm.pages*uint64(os.Getpagesize()) + 2<<30, Max: now.Max}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		t.Fatal(err)
	}
	if _, err := linmem.New(4 << 30); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("New: got error %v, want one that says that memory is lacking", err)
	}
	if _, err := image.Map(4 << 30); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("Map: got error %v, want one that says that memory is lacking", err)
	}
	small.Bytes()[5]++
	if _, err := small.Reset(); err != nil || !small.Equal() {
		t.Errorf("a memory that was there before can't be reset: %v", err)
	}
	if err := errors.Join(small.Free(), image.Close()); err != nil {
		t.Error(err)
	}
}

// TestDescriptors makes more images than there are descriptors: the images of a store share a few. It, too, runs in a process of its own.
// Proves: Limits hold, one by one and in sum
func TestDescriptors(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the test can't start itself again")
	if os.Getenv("LINMEM_DESCRIPTORS") == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDescriptors$", "-test.v")
		child.Env = append(os.Environ(), "LINMEM_DESCRIPTORS=1")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestDescriptors")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	content := filled(granule, func(b []byte) { b[0] = 1 })
	var store linmem.Store
	first, err := store.NewImage(content) // opens the pagemap
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	before, _ := mappings(t)
	images := []*linmem.Image{first}
	for range 1000 {
		image, err := store.NewImage(content)
		if err != nil {
			t.Fatalf("NewImage number %d: %v", len(images), err)
		}
		images = append(images, image)
	}
	if after, _ := mappings(t); after-before > 50 { // Go's heap may have grown meanwhile
		t.Errorf("1,000 images take %d mappings, want none", after-before)
	}
	var kept []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		kept = append(kept, f)
	}
	if _, err := new(linmem.Store).NewImage(content); !errors.Is(err, unix.EMFILE) {
		t.Errorf("a new store: got error %v, want one that says that too many files are open", err)
	}
	m, err := first.Map(granule)
	if err != nil {
		t.Errorf("Map needs a descriptor: %v", err)
	}
	free(t, m)
	for _, f := range kept {
		f.Close()
	}
	for _, image := range images {
		if err := image.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStoreIsEmptied makes an image in a place where others were before. It must see nothing of them.
func TestStoreIsEmptied(t *testing.T) {
	t.Parallel()
	var store linmem.Store
	stay, err := store.NewImage(filled(granule, func(b []byte) { b[0] = 1 }))
	if err != nil {
		t.Fatal(err)
	}
	defer stay.Close()
	for round := range 20 {
		full, err := store.NewImage(filled((1+round%3)*granule, func(b []byte) {
			for i := range b {
				b[i] = 0xee
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		old, err := full.Map(uint64(full.Size()))
		if err != nil {
			t.Fatal(err)
		}
		if err := full.Close(); err != nil { // the memory still holds it
			t.Fatal(err)
		}
		if old.Bytes()[full.Size()-1] != 0xee {
			t.Fatal("a memory lost its image's content before it was freed")
		}
		free(t, old)
		last := 3*granule - 1
		sparse, err := store.NewImage(filled(3*granule, func(b []byte) { b[last] = 1 }))
		if err != nil {
			t.Fatal(err)
		}
		m, err := sparse.Map(3 * granule)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Bytes()[:last], make([]byte, last)) || m.Bytes()[last] != 1 {
			t.Fatal("an image shows what another one left")
		}
		if got, want := sparse.Resident(), os.Getpagesize(); got != want {
			t.Errorf("Resident: got %d, want %d", got, want)
		}
		free(t, m)
		if err := sparse.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrict makes the system count reserved memory. Memories must work in that case, too. It runs in a process of its own, and limits that
// process.
func TestStrict(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	testkit.SkipEmulated(t, "the test can't start itself again, and limits of memory apply to the emulator, too")
	if os.Getenv("LINMEM_STRICT") == "" {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
			t.Fatal(err)
		}
		child := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -d 2097152 && exec "$0" "$@"`, os.Args[0], "-test.run=^(TestStrict|TestMap|TestReset|TestGrow).*$", "-test.v")
		child.Env = append(os.Environ(), "LINMEM_STRICT=1")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestStrict")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	image, err := new(linmem.Store).NewImage(filled(granule, func(b []byte) { b[0] = 1 }))
	if err != nil {
		t.Fatal(err)
	}
	var all []*linmem.Memory
	for range 50 { // memories of 64 MiB each: together more than the limit
		m, err := image.Map(64 << 20)
		if err != nil {
			t.Fatalf("memory number %d: %v", len(all), err)
		}
		m.Grow(2 * granule)[granule] = 1
		all = append(all, m)
	}
	if got := all[0].Mappings(); got != 3 {
		t.Errorf("Mappings: got %d, want 3", got)
	}
	for _, m := range all {
		if _, err := m.Reset(); err != nil || !m.Equal() {
			t.Errorf("Reset: %v", err)
		}
		free(t, m)
	}
}
