package core

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/bucket"
	"github.com/toolsrv/toolsrv/internal/catalog/directory"
	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/internal/versions"
)

// Sources are where the files of a configuration come from.
type Sources struct {
	// All are the sources in the order of their precedence, with their records.
	All []catalog.Sourced

	directories []opened
	buckets     []openedBucket
	registries  []openedRegistry
	closers     []io.Closer
}

// openedRegistry is a module of a registry among the sources.
type openedRegistry struct {
	*registry.Source
	oci, tag string // the repository and the tag, as in the configuration
}

// openedBucket is a bucket among the sources.
type openedBucket struct {
	*bucket.Bucket
	called  string // the source's name in the configuration
	name    string // the bucket's own name
	scripts directory.Names
}

// opened is a directory among the sources.
type opened struct {
	*directory.Directory
	called  string          // the source's name in the configuration
	scripts directory.Names // tells which files are scripts, or nil
}

// OpenSources opens the sources of a configuration: directories, each with or without scripts, and modules of registries. It fails if none of them
// can be used: see CheckSources. The caller closes the Sources.
func OpenSources(c *config.Config, logger *slog.Logger) (*Sources, error) {
	return openSources(c, logger, nil, nil)
}

// openSources is OpenSources with two more arguments, which may be nil: the cache of collected scripts, and the account for the memory that reading
// takes.
func openSources(c *config.Config, logger *slog.Logger, before *script.Memory, claim func(bytes int64) (give func())) (*Sources, error) {
	if err := CheckSources(c); err != nil {
		return nil, err
	}
	builder := script.Builder{Engines: engine.Carried(), Memory: before}
	s, all := &Sources{}, configured.Sources(c)
	if len(c.Tools.ScriptHelper) > 0 {
		builder.Readers = script.NewReaders(c.Tools.ScriptHelper, account.MachineMemory(), claim)
		s.closers = append(s.closers, builder.Readers)
	}
	var wrong []error         // errors of registries, reported together
	var cache *registry.Cache // shared by all registries and buckets
	for _, one := range all {
		if cache == nil && one.Directory == "" {
			cache = registry.OpenCache(registryCache(c), 0)
		}
		if one.Bucket != "" {
			s.openBucket(c, one, cache, builder, logger)
			continue
		}
		if one.OCI != "" {
			if err := s.openRegistry(c, one, cache, logger); err != nil {
				wrong = append(wrong, fmt.Errorf("open a registry of tools: %w", err))
			}
			continue
		}
		o := directory.Options{Modules: c.Tools.Modules, Logger: logger, MayBeAway: len(all) > 1}
		from := catalog.Sourced{Name: one.Name, Namespaces: one.Namespaces, Prefix: one.Prefix, Most: c.Tools.Modules}
		if one.Scripts {
			o.Scripts, from.Scripts = builder, builder
		} else {
			o.IsScript = func(name string) bool { return builder.IsScript(name) && !builder.IsPart(name) }
		}
		d, err := directory.Open(one.Directory, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open a directory of tools: %w", err), s.Close())
		}
		s.directories, s.closers = append(s.directories, opened{d, one.Name, o.Scripts}), append(s.closers, d)
		from.Source, from.Record = d, recordFile(c, d.ID())
		s.All = append(s.All, from)
	}
	if wrong != nil {
		return nil, errors.Join(errors.Join(wrong...), s.Close())
	}
	return s, nil
}

// openRegistry starts to follow a module of a registry.
func (s *Sources) openRegistry(c *config.Config, one config.Source, cache *registry.Cache, logger *slog.Logger) error {
	o, err := RegistryOptions(one)
	if err != nil {
		return err
	}
	o.Cache, o.Logger = cache, logger
	source, err := registry.Open(o)
	if err != nil {
		return fmt.Errorf("%s: %w", one.OCI, err)
	}
	s.registries = append(s.registries, openedRegistry{source, one.OCI, one.Tag})
	s.closers = append(s.closers, source)
	s.All = append(s.All, catalog.Sourced{Name: one.Name, Source: source, Record: recordFile(c, source.ID()), Namespaces: one.Namespaces, Prefix: one.Prefix})
	return nil
}

// RegistryOptions returns what a source needs to ask a registry and its mirrors. It reads the key files of the signers, too.
func RegistryOptions(one config.Source) (registry.Options, error) {
	repository, err := oci.ParseReference(one.OCI)
	if err != nil {
		return registry.Options{}, err
	}
	o := registry.Options{Repository: repository, Which: one.Tag, Locked: one.Locked}
	for _, name := range one.Mirrors {
		mirror, err := oci.ParseReference(name)
		if err != nil {
			return o, err
		}
		o.Mirrors = append(o.Mirrors, mirror)
	}
	if o.Registry, err = reachOf(one); err != nil {
		err = fmt.Errorf("%s: %w", one.OCI, err)
	}
	return o, err
}

// prepare prepares a configuration's changes for the registries that are followed: locked digests, accepted signers, mirrors, and how a registry is
// reached. It reads the key files of the signers again. take puts the changes in force. Other changes of sources need a restart.
func (s *Sources) prepare(c *config.Config) (take func(), err error) {
	var all []func()
	var wrong []error
	for _, one := range c.Sources {
		i := slices.IndexFunc(s.registries, func(r openedRegistry) bool { return r.oci == one.OCI && r.tag == one.Tag })
		if one.OCI == "" || i < 0 {
			continue
		}
		o, err := RegistryOptions(one)
		var change func()
		if err == nil {
			change, err = s.registries[i].Prepare(o)
		}
		if err != nil {
			wrong = append(wrong, err)
		} else if change != nil {
			all = append(all, change)
		}
	}
	return func() {
		for _, change := range all {
			change()
		}
	}, errors.Join(wrong...)
}

// CheckRegistries returns an error if the sources of a configuration that are in registries can't be opened: a file that says whose signatures count,
// or how a registry is reached, is missing or wrong. It asks no registry.
func CheckRegistries(c *config.Config) error {
	var wrong []error
	for _, one := range configured.Sources(c) {
		if one.OCI == "" {
			continue
		}
		o, err := RegistryOptions(one)
		if err == nil {
			err = registry.Check(o)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("open a registry of tools: %w", err))
		}
	}
	return errors.Join(wrong...)
}

// openBucket opens a bucket, which is empty until a service calls follow.
func (s *Sources) openBucket(c *config.Config, one config.Source, cache *registry.Cache, builder script.Builder, logger *slog.Logger) {
	opened := openedBucket{called: one.Name, name: one.Bucket}
	from := catalog.Sourced{Name: one.Name, Namespaces: one.Namespaces, Prefix: one.Prefix, Most: c.Tools.Modules}
	o := bucket.Options{Name: one.Bucket, Cache: cache, Logger: logger, Versions: func() int { return bucketVersions(c) }}
	if one.Scripts {
		o.Scripts, opened.scripts, from.Scripts = builder, builder, builder
	}
	opened.Bucket = bucket.Open(o)
	from.Source, from.Record = opened.Bucket, recordFile(c, opened.ID())
	s.All, s.buckets, s.closers = append(s.All, from), append(s.buckets, opened), append(s.closers, opened)
}

// bucketVersions returns how many versions of a file in a bucket are kept.
func bucketVersions(c *config.Config) int {
	if c.State.Versions == 0 {
		return 1
	}
	return versions.PerFile
}

// follow starts to follow the buckets, whose records are in a state.
func (s *Sources) follow(store state.Store) error {
	for _, b := range s.buckets {
		in, ok := store.(*nats.Store)
		if !ok {
			return fmt.Errorf("the bucket %s can't be used: the state is not in NATS", b.name)
		}
		b.Follow(store.Space(bucket.Space(b.name)), in.Objects(b.name))
	}
	return nil
}

// reachOf returns how the registry of a source is reached, and whose signatures are accepted.
func reachOf(s config.Source) (oci.Options, error) {
	o := oci.Options{MaxModule: sandbox.MaxModule, PlainHTTP: s.PlainHTTP, CA: s.CA, Credentials: s.Credentials, Agent: "toolsrv"}
	var signers []signature.Signer
	for _, one := range s.Signers {
		signers = append(signers, signature.Signer(one))
	}
	var err error
	if signers != nil {
		o.Trust, err = signature.Open(signers)
		o.Minimum = s.Minimum
	}
	return o, err
}

// registryCache returns the folder for pulled modules, or "" if there is no place for it.
func registryCache(c *config.Config) string {
	cache, err := CacheDir(c)
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "registry")
}

// openFiles opens the files at these paths.
func openFiles(paths []string, logger *slog.Logger) (*Sources, error) {
	builder := script.Builder{}
	files, err := directory.OpenFiles(paths, directory.Options{Logger: logger, Scripts: builder})
	if err != nil {
		return nil, err
	}
	return &Sources{All: []catalog.Sourced{{Source: files, Scripts: builder}}, closers: []io.Closer{files}}, nil
}

// A Directory is a directory or a bucket that is served, in which files can be put.
type Directory struct {
	// ID is the ID of its source, an absolute path. Path is as in the configuration. Name is the source's name, if the configuration gives one.
	ID, Path, Name string
	// told is whether the name follows the places of files in messages.
	told bool
	// Scripts tells which of its files are scripts. If nil, none are served.
	Scripts directory.Names
	// Bucket is set if this is not a directory on disk but a bucket. Then ID and Path are its address.
	Bucket *bucket.Bucket
}

// Place returns where one of its files lies, for messages.
func (d Directory) Place(name string) string {
	place := filepath.Join(d.Path, filepath.FromSlash(name))
	if d.Bucket != nil {
		place = d.Bucket.Place(name)
	}
	if d.told {
		place += " (" + d.Name + ")"
	}
	return place
}

// Unserved returns the paths of the scripts that were passed over when the sources were last listed. It must not be called during a listing.
func (s *Sources) Unserved() (paths []string) {
	for _, d := range s.directories {
		for _, name := range d.Unserved() {
			paths = append(paths, d.Place(name))
		}
	}
	return paths
}

// Close closes the sources.
func (s *Sources) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// CheckSources returns an error if no source of a configuration can be used, because the directories are missing or are files. The error says what to
// do. Registries may be unreachable. If at least one source can be opened, the catalog reports the others, which may become available later. The
// error has absolute paths, since its reader may not know where the server was started.
func CheckSources(c *config.Config) error {
	var errs []error
	for _, one := range configured.Sources(c) {
		if one.Directory == "" {
			return nil
		}
		setting := "the directory of its [[source]]"
		if one.Directory == c.Tools.Directory {
			setting = "tools.directory"
		}
		err := checkDirectory(one.Directory, setting)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkDirectory checks a directory that a setting names.
func checkDirectory(directory, setting string) error {
	if abs, err := filepath.Abs(directory); err == nil {
		directory = abs
	}
	switch info, err := os.Stat(directory); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no tools directory %s: make it, and put .wasm files into it, or set %s to the one that has them", directory, setting)
	case err != nil:
		return fmt.Errorf("look at the tools directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the tools directory %s is a file: set %s to the folder with the .wasm files", directory, setting)
	}
	return nil
}
