package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

const minRSA = 2048 // bits

// checkKey returns an error unless a public key is of a supported kind. With SHA-256, such a key has only one way to sign.
func checkKey(public crypto.PublicKey) error {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return fmt.Errorf("the curve %s is not supported: use P-256", k.Curve.Params().Name)
		}
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA || k.N.BitLen() > 4*minRSA {
			return fmt.Errorf("an RSA key of %d bits is not supported: use one of %d", k.N.BitLen(), minRSA+minRSA/2)
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("keys of the type %T are not supported: use ECDSA with P-256", public)
	}
	return nil
}

// A Key signs.
type Key struct{ signer crypto.Signer }

// ReadKey reads a private key: PKCS #8 or SEC 1 as openssl writes them, or cosign's with a password, for which it calls password.
func ReadKey(path string, password func() string) (*Key, error) {
	content, err := readFile(path, maxKey)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", errors.Unwrap(err))
	}
	block, rest := pem.Decode(content)
	if block != nil && block.Type == "EC PARAMETERS" { // openssl ecparam -genkey writes these above the key, which contains them, too
		content = rest
		block, _ = pem.Decode(content)
	}
	if block == nil {
		return nil, fmt.Errorf("%s has no key: name a PEM file, such as cosign.key", path)
	}
	if hasSeveral(content) {
		return nil, fmt.Errorf("%s has more than one key: name a file with the one that signs", path)
	}
	var key any
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		var plain []byte
		if plain, err = encrypted.Decrypt(block.Bytes, []byte(password())); err != nil {
			return nil, fmt.Errorf("%s does not open with this password: set COSIGN_PASSWORD to the right one", path)
		}
		key, err = x509.ParsePKCS8PrivateKey(plain)
	default:
		return nil, fmt.Errorf("%s has %.40q, not a private key: name a PEM file with one, unencrypted or cosign's own", path, block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("the key in %s is damaged", path) // without showing a part of the file
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: keys of the type %T don't sign", path, key)
	}
	if err := checkKey(signer.Public()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Key{signer}, nil
}

// hasSeveral reports whether a file contains more than one PEM block, damaged ones included. Only one key of a file is used, and nobody would notice
// that the others are not.
func hasSeveral(content []byte) bool { return bytes.Count(content, []byte("-----BEGIN ")) > 1 }

// A bundle has the fields of a Sigstore bundle that this package writes.
type bundle struct {
	MediaType            string `json:"mediaType"`
	VerificationMaterial struct {
		PublicKey struct {
			Hint string `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	Envelope struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  [1]struct {
			Sig []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

// A statement is an in-toto statement.
type statement struct {
	Type          string         `json:"_type"`
	Subject       []subject      `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     map[string]any `json:"predicate"`
}

type subject struct {
	Digest map[string]string `json:"digest"`
}

// Sign signs an artifact as cosign does, and returns the bundle. artifact is the content of its manifest.
func (k *Key) Sign(digest [sha256.Size]byte) ([]byte, error) {
	payload, err := json.Marshal(statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: PredicateType, Predicate: map[string]any{},
		Subject: []subject{{map[string]string{"sha256": fmt.Sprintf("%x", digest)}}},
	})
	if err != nil {
		return nil, err
	}
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
	sum, hash := sha256.Sum256(message), crypto.Hash(crypto.SHA256)
	if _, ok := k.signer.(ed25519.PrivateKey); ok {
		hash = 0
	} else {
		message = sum[:]
	}
	sig, err := k.signer.Sign(rand.Reader, message, hash)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(k.signer.Public())
	if err != nil {
		return nil, err
	}
	hint := sha256.Sum256(public)
	b := bundle{MediaType: MediaType}
	b.VerificationMaterial.PublicKey.Hint = base64.StdEncoding.EncodeToString(hint[:])
	b.Envelope.Payload, b.Envelope.PayloadType, b.Envelope.Signatures[0].Sig = payload, payloadType, sig
	return json.Marshal(b)
}

func readFile(path string, most int) ([]byte, error) {
	content, err := textfile.UpTo(path, most)
	if err != nil {
		return nil, fmt.Errorf("read the keys that check signatures: %w", err)
	}
	return content, nil
}
