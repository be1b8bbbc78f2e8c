package wasi

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// maxPath is the longest path that a guest may give, in bytes.
const maxPath = 4096

// The flags of paths.
const (
	lookupFollow  = 1 << 0 // follow a link at the end
	openCreate    = 1 << 0
	openDirectory = 1 << 1
	openExclusive = 1 << 2
	openTruncate  = 1 << 3
)

// A place is what a guest's path leads to.
type place struct {
	name   string // below "/"; "." is "/" itself
	slash  bool   // the path demands a directory
	tree   Tree   // nil: "/" itself
	within string // its name in the tree
}

// locate reads a path relative to an open directory, and opens the tree that it leads into.
func locate(c *hostcall.Call, fd, ptr, length uint64) (at place, errno uint64) {
	p := files(c)
	d := opened(c, fd)
	switch {
	case p.grant == nil:
		return at, errnoNotCapable
	case d == nil && uint32(fd) >= rootFD:
		return at, errnoBadF
	case d == nil || !d.dir:
		return at, errnoNotDir
	case uint32(length) > maxPath:
		return at, errnoNameTooLong
	}
	given := string(c.View(ptr, length))
	elements := strings.Count(given, "/") // counted before ".." removes any, since the removed elements take time, too
	c.Charge(costPath + costElement*elements + len(given)*costByte)
	if at.name, at.slash, errno = resolve(d.name, given); errno != errnoSuccess || at.name == "." {
		return at, errno
	}
	c.Charge(costElement * max(0, strings.Count(at.name, "/")-elements)) // of the directory
	granted, rest, below := strings.Cut(at.name, "/")
	if at.within = rest; !below {
		at.within = "."
	}
	at.tree, errno = p.tree(c, granted)
	return at, errno
}

// resolve returns the meaning of a path relative to a directory, which the path must not leave. It only looks at the text: "a/.." is
// ".", whatever a is.
func resolve(dir, text string) (name string, slash bool, errno uint64) {
	switch {
	case text == "":
		return "", false, errnoNoEnt
	case strings.IndexByte(text, 0) >= 0:
		return "", false, errnoInval
	case text[0] == '/':
		return "", false, errnoNotCapable
	}
	clean := path.Clean(text)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", false, errnoNotCapable
	}
	last := text[strings.LastIndexByte(text, '/')+1:]
	return path.Join(dir, clean), last == "" || last == "." || last == "..", errnoSuccess
}

// tree returns the tree of a granted directory. It opens the tree when it is first used.
func (p *process) tree(c *hostcall.Call, name string) (Tree, uint64) {
	if t := p.trees[name]; t != nil {
		return t, errnoSuccess
	}
	granted := p.grant.Directories[name]
	if granted == nil {
		return nil, errnoNoEnt
	}
	if !acquire(c) {
		return nil, errnoNFile
	}
	t, err := granted.Open()
	if err != nil {
		release(c)
		return nil, errnoOf(err)
	}
	if p.trees == nil {
		p.trees = map[string]Tree{}
	}
	p.trees[name] = t
	return t, errnoSuccess
}

// stat describes what is at the place.
func (at place) stat(follow bool) (info fs.FileInfo, errno uint64) {
	if at.tree == nil {
		return rootInfo{}, errnoSuccess
	}
	var err error
	if follow || at.slash {
		info, err = at.tree.Stat(at.within)
	} else {
		info, err = at.tree.Lstat(at.within)
	}
	if err == nil && at.slash && !info.IsDir() {
		return nil, errnoNotDir
	}
	return info, errnoOf(err)
}

func pathOpen(c *hostcall.Call, stack []uint64) {
	at, errno := locate(c, stack[0], stack[2], stack[3])
	if errno == errnoSuccess {
		var fd uint32
		if fd, errno = at.open(c, stack[1]&lookupFollow != 0, uint32(stack[4]), stack[5]); errno == errnoSuccess {
			c.WriteUint32(stack[8], fd)
		}
	}
	if errno == errnoNoEnt && at.name != "" && stack[4]&openCreate != 0 {
		errno = errnoROFS
	}
	if errno != errnoSuccess && current(c).grants(at.name) {
		used(c, at.name, 0, 0, errno)
	}
	stack[0] = errno
}

// open opens the file or directory at the place for reading.
func (at place) open(c *hostcall.Call, follow bool, flags uint32, rights uint64) (fd uint32, errno uint64) {
	p := current(c)
	info, errno := at.stat(follow)
	switch {
	case errno != errnoSuccess:
		return 0, errno
	case flags&openCreate != 0 && flags&openExclusive != 0:
		return 0, errnoExist
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, errnoLoop
	case flags&openDirectory != 0 && !info.IsDir():
		return 0, errnoNotDir
	case rights&rightWrite != 0 || flags&openTruncate != 0:
		return 0, errnoROFS
	case !p.room():
		return 0, errnoMFile
	case at.tree == nil:
		return p.add(&descriptor{name: at.name, dir: true}), errnoSuccess
	}
	if errno := acquireFile(c); errno != errnoSuccess {
		return 0, errno
	}
	begun := time.Now()
	file, err := at.tree.Open(at.within)
	if err != nil {
		releaseFile(c)
		return 0, errnoOf(err)
	}
	if info, err = file.Stat(); err == nil && !info.IsDir() && (at.slash || flags&openDirectory != 0) { // it was replaced
		err = syscall.ENOTDIR
	}
	if err != nil {
		_ = file.Close()
		releaseFile(c)
		return 0, errnoOf(err)
	}
	return p.add(&descriptor{name: at.name, file: file, dir: info.IsDir(), took: time.Since(begun)}), errnoSuccess
}

func pathStat(c *hostcall.Call, stack []uint64) {
	at, errno := locate(c, stack[0], stack[2], stack[3])
	if errno == errnoSuccess {
		var info fs.FileInfo
		if info, errno = at.stat(stack[1]&lookupFollow != 0); errno == errnoSuccess {
			writeStat(c, stack[4], at.name, info)
		}
	}
	stack[0] = errno
}

// pathReadLink returns where a link leads, unless that is out of the tree, which guests must not learn. An absolute link always leads out.
func pathReadLink(c *hostcall.Call, stack []uint64) {
	at, errno := locate(c, stack[0], stack[1], stack[2])
	if errno != errnoSuccess {
		stack[0] = errno
		return
	}
	info, errno := at.stat(false)
	if errno == errnoSuccess && info.Mode()&fs.ModeSymlink == 0 {
		errno = errnoInval
	}
	if errno != errnoSuccess {
		stack[0] = errno
		return
	}
	to, err := at.tree.ReadLink(at.within)
	if err == nil && at.leadsOut(to) {
		stack[0] = errnoNotCapable
		return
	}
	if stack[0] = errnoOf(err); err != nil {
		return
	}
	to = to[:min(uint64(len(to)), uint64(uint32(stack[4])))]
	c.Write(stack[3], []byte(to))
	c.WriteUint32(stack[5], uint32(len(to)))
}

// leadsOut reports whether a link at the place leads out of its tree. It checks the text of the link first: the link may meanwhile have been replaced
// by one that stays inside.
func (at place) leadsOut(to string) bool {
	if path.IsAbs(to) || filepath.IsAbs(to) {
		return true
	}
	if end := path.Join(path.Dir(at.within), filepath.ToSlash(to)); end == ".." || strings.HasPrefix(end, "../") {
		return true
	}
	_, err := at.tree.Stat(at.within)
	return err != nil && errnoOf(err) == errnoNotCapable
}

// refuse implements functions that would change something at a path. fd is the index of the parameter with the directory.
func refuse(fd int) func(*hostcall.Call, []uint64) {
	return func(c *hostcall.Call, stack []uint64) {
		d := opened(c, stack[fd])
		switch {
		case files(c).grant == nil:
			stack[0] = errnoNotCapable
		case d == nil && uint32(stack[fd]) >= rootFD:
			stack[0] = errnoBadF
		case d == nil || !d.dir:
			stack[0] = errnoNotDir
		default:
			stack[0] = errnoROFS
		}
	}
}
