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

// configuration is what the type application/vnd.wasm.config.v0+json has.
type configuration struct {
	Created      time.Time       `json:"created"`
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	LayerDigests []digest.Digest `json:"layerDigests"`
}

// Push makes an artifact of a module, and gives it the tag of the reference. name is what clients call the file that they pull. The same module
// with the same name and annotations is the same artifact, so it has no time: that is the first of 1970.
func (r *Registry) Push(ctx context.Context, ref Reference, name string, module []byte, annotations map[string]string) (*Artifact, error) {
	return r.PushWith(ctx, ref, name, module, annotations, With{})
}

// With is what is pushed with a module.
type With struct {
	// Key signs the artifact. If nil, it is not signed.
	Key *signature.Key
	// Source is what the module was made of. If empty, it has none.
	Source []SourceFile
}

// PushWith is Push with more: all of it is there before the artifact has its tag, so nobody finds it unsigned or without its source.
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

// pushBeside pushes what refers to an artifact, which needs no tag for that.
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
