package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/toolsrv/toolsrv/internal/signature"
)

// configuration is the content of type application/vnd.wasm.config.v0+json.
type configuration struct {
	Created      time.Time       `json:"created"`
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	LayerDigests []digest.Digest `json:"layerDigests"`
}

// Push pushes a module as an artifact, with the tag of the reference. name is the file name for clients that pull it. The same module with the same
// name and annotations always gives the same artifact, so its creation time is the beginning of 1970.
func (r *Registry) Push(ctx context.Context, ref Reference, name string, module []byte, annotations map[string]string) (*Artifact, error) {
	return r.PushWith(ctx, ref, name, module, annotations, With{})
}

// With is what is pushed along with a module.
type With struct {
	// Key signs the artifact. If nil, it is not signed.
	Key *signature.Key
	// Source is the source of the module. It may be empty.
	Source []SourceFile
}

// PushWith is Push with a signature and a source. Both are pushed before the tag is set, so that nobody finds the artifact unsigned or without its
// source.
func (r *Registry) PushWith(ctx context.Context, ref Reference, name string, module []byte, annotations map[string]string, with With) (*Artifact, error) {
	var source []byte
	if len(with.Source) > 0 {
		var err error
		if source, err = packSource(with.Source); err != nil {
			return nil, r.explainPull(ref, fmt.Errorf("%w: push it without its source", err))
		}
		annotations = maps.Clone(annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[sourceAnnotation] = digest.FromBytes(source).String()
	}
	layer := ocispec.Descriptor{MediaType: moduleType, Digest: digest.FromBytes(module), Size: int64(len(module)), Annotations: map[string]string{ocispec.AnnotationTitle: name}}
	about, err := json.Marshal(configuration{Created: time.Unix(0, 0).UTC(), Architecture: "wasm", OS: "wasip1", LayerDigests: []digest.Digest{layer.Digest}})
	if err != nil {
		return nil, err
	}
	config := ocispec.Descriptor{MediaType: configType, Digest: digest.FromBytes(about), Size: int64(len(about))}
	content, err := json.Marshal(ocispec.Manifest{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   ocispec.MediaTypeImageManifest,
		Config:      config,
		Layers:      []ocispec.Descriptor{layer},
		Annotations: annotations,
	})
	if err != nil {
		return nil, err
	}
	repository := r.repository(ref)
	for _, blob := range []struct {
		ocispec.Descriptor
		content []byte
	}{{layer, module}, {config, about}} {
		there, err := repository.Blobs().Exists(ctx, blob.Descriptor)
		if err == nil && !there {
			err = repository.Blobs().Push(ctx, blob.Descriptor, bytes.NewReader(blob.content))
		}
		if err != nil {
			return nil, r.explain(ref.String(), err)
		}
	}
	top := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := r.pushBeside(ctx, repository, top, content, name, source, with.Key); err != nil {
		return nil, r.explain(ref.String(), err)
	}
	if err := repository.Manifests().PushReference(ctx, top, bytes.NewReader(content), ref.which()); err != nil {
		return nil, r.explain(ref.String(), err)
	}
	return &Artifact{Manifest: top.Digest.String(), Digest: layer.Digest.String(), Size: layer.Size, Annotations: annotations, top: top}, nil
}

// pushBeside pushes an artifact that refers to another one. It needs no tag.
func (r *Registry) pushBeside(ctx context.Context, repository *remote.Repository, top ocispec.Descriptor, manifest []byte, name string, source []byte, key *signature.Key) error {
	if source == nil && key == nil {
		return nil
	}
	err := repository.Manifests().Push(ctx, top, bytes.NewReader(manifest))
	if err == nil && source != nil {
		err = attachSource(ctx, repository, top, name, source)
	}
	if err == nil && key != nil {
		err = r.sign(ctx, repository, top, manifest, key)
	}
	return err
}
