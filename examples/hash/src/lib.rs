//! Digests and message authentication codes: `hash/digest`, `hash/hmac` and `hash/verify`.

mod algorithm;
mod bytes;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::{Error, tool};

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    #[default]
    Sha256,
    Sha384,
    Sha512,
    #[serde(rename = "sha3-256")]
    Sha3_256,
    #[serde(rename = "sha3-384")]
    Sha3_384,
    #[serde(rename = "sha3-512")]
    Sha3_512,
    Blake3,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum MacAlgorithm {
    Md5,
    Sha1,
    #[default]
    Sha256,
    Sha384,
    Sha512,
    #[serde(rename = "sha3-256")]
    Sha3_256,
    #[serde(rename = "sha3-512")]
    Sha3_512,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Utf8,
    Hex,
    Base64,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Output {
    #[default]
    Hex,
    Base64,
}

#[derive(Deserialize, JsonSchema)]
struct Data {
    /// What to hash.
    data: String,
    /// How "data" is written: "utf8" is text as it stands; "hex" and "base64" stand for any bytes.
    #[serde(default)]
    encoding: Encoding,
    /// The algorithm. md5 and sha1 are for comparing with what others computed: they are broken and protect nothing.
    #[serde(default)]
    algorithm: Algorithm,
    /// How to write the result.
    #[serde(default)]
    output: Output,
}

/// Compute the digest (checksum, hash) of a text or of bytes.
#[tool(
    title = "Compute a digest",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"data": "abc"}"#,
        result = r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#
    ),
    example(
        arguments = r#"{"data": "616263", "encoding": "hex", "algorithm": "md5"}"#,
        result = r#""900150983cd24fb0d6963f7d28e17f72""#
    ),
    example(
        arguments = r#"{"data": "", "algorithm": "sha1", "output": "base64"}"#,
        result = r#""2jmj7l5rSw0yVb/vlWAYkK/YBwk=""#
    )
)]
fn digest(data: Data) -> Result<String, Error> {
    let bytes = bytes::decode("data", &data.data, data.encoding)?;
    Ok(bytes::encode(&algorithm::digest(data.algorithm, &bytes), data.output))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// The message that the code is for.
    data: String,
    /// How "data" is written: "utf8" is text as it stands; "hex" and "base64" stand for any bytes.
    #[serde(default)]
    encoding: Encoding,
    /// The secret key.
    #[schemars(length(min = 1))]
    key: String,
    /// How "key" is written.
    #[serde(default)]
    key_encoding: Encoding,
    /// The hash function within HMAC. md5 and sha1 are for old protocols only.
    #[serde(default)]
    algorithm: MacAlgorithm,
    /// How to write the result.
    #[serde(default)]
    output: Output,
}

/// Compute the HMAC of a message with a secret key, to sign a webhook or a request.
#[tool(
    title = "Compute an HMAC",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"data": "what do ya want for nothing?", "key": "Jefe"}"#,
        result = r#""5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843""#
    ),
    example(
        arguments = r#"{"data": "Hi There", "key": "CwsLCwsLCwsLCwsLCwsLCwsLCws=", "key_encoding": "base64", "algorithm": "md5"}"#,
        result = r#""5ccec34ea9656392457fa1ac27f08fbc""#
    )
)]
fn hmac(message: Message) -> Result<String, Error> {
    let mac = code(&message.data, message.encoding, &message.key, message.key_encoding, message.algorithm)?;
    Ok(bytes::encode(&mac, message.output))
}

#[derive(Deserialize, JsonSchema)]
struct Signed {
    /// The message as it was received.
    data: String,
    /// How "data" is written: "utf8" is text as it stands; "hex" and "base64" stand for any bytes.
    #[serde(default)]
    encoding: Encoding,
    /// The secret key.
    #[schemars(length(min = 1))]
    key: String,
    /// How "key" is written.
    #[serde(default)]
    key_encoding: Encoding,
    /// The HMAC that came with the message, whole, without a prefix such as "sha256=".
    mac: String,
    /// How "mac" is written.
    #[serde(default)]
    mac_encoding: Output,
    /// The hash function within HMAC.
    #[serde(default)]
    algorithm: MacAlgorithm,
}

#[derive(Serialize, JsonSchema)]
struct Verdict {
    /// Whether the code is that of the message and the key.
    valid: bool,
}

/// Check the HMAC of a message, such as the signature of a webhook. The time that it takes reveals nothing about the
/// right code.
#[tool(
    title = "Verify an HMAC",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"data": "what do ya want for nothing?", "key": "4a656665", "key_encoding": "hex", "mac": "750c783e6ab0b503eaa86e310a5db738", "algorithm": "md5"}"#,
        result = r#"{"valid": true}"#
    ),
    example(
        arguments = r#"{"data": "forged", "key": "Jefe", "mac": "AAAA", "mac_encoding": "base64"}"#,
        result = r#"{"valid": false}"#
    )
)]
fn verify(signed: Signed) -> Result<Verdict, Error> {
    let encoding = match signed.mac_encoding {
        Output::Hex => Encoding::Hex,
        Output::Base64 => Encoding::Base64,
    };
    let got = bytes::decode("mac", &signed.mac, encoding)?;
    let want = code(&signed.data, signed.encoding, &signed.key, signed.key_encoding, signed.algorithm)?;
    Ok(Verdict { valid: algorithm::same(&got, &want) })
}

toolsrv::export! { namespace: "hash", tools: [digest, hmac, verify] }

fn code(
    data: &str,
    encoding: Encoding,
    key: &str,
    key_encoding: Encoding,
    algorithm: MacAlgorithm,
) -> Result<Vec<u8>, Error> {
    let key = bytes::decode("key", key, key_encoding)?;
    if key.is_empty() {
        return Err(Error::new("The argument \"key\" is empty: anybody could compute the code. Pass the secret.")
            .code("no_key"));
    }
    Ok(algorithm::mac(algorithm, &key, &bytes::decode("data", data, encoding)?))
}

#[cfg(test)]
mod tests;
