package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

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
	return r.PushSigned(ctx, ref, name, module, annotations, nil)
}

// PushSigned is Push with a key, which signs the artifact before it has its tag: nobody finds it unsigned. Nil: it is not signed.
func (r *Registry) PushSigned(ctx context.Context, ref Reference, name string, module []byte, annotations map[string]string, key *signature.Key) (*Artifact, error) {
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
	if key != nil {
		if err := repository.Manifests().Push(ctx, top, bytes.NewReader(content)); err != nil {
			return nil, r.explain(ref.String(), err)
		}
		if err := r.sign(ctx, repository, top, content, key); err != nil {
			return nil, r.explain(ref.String(), err)
		}
	}
	if err := repository.Manifests().PushReference(ctx, top, bytes.NewReader(content), ref.which()); err != nil {
		return nil, r.explain(ref.String(), err)
	}
	return &Artifact{Manifest: top.Digest.String(), Digest: layer.Digest.String(), Size: layer.Size, Annotations: annotations}, nil
}
