use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// `Bytes` are a string in base64 in JSON, and say so in the schema. What they hold is said beside them:
///
/// ```
/// use toolsrv::Bytes;
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Chart {
///     #[schemars(extend("contentMediaType" = "image/png"))]
///     picture: Bytes,
///     points: usize,
/// }
///
/// /// A result that is a picture and nothing else.
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// #[schemars(extend("contentMediaType" = "image/png"))]
/// struct Png(Bytes);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl JsonSchema for Bytes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "contentEncoding": "base64" })
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Base64)
    }
}

struct Base64;

impl Visitor<'_> for Base64 {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64 with its padding")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        decode(text.as_bytes()).map(Bytes).ok_or_else(|| E::custom("this is not base64 with its padding"))
    }
}

/// The standard alphabet.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[allow(clippy::indexing_slicing)] // 6 bits are below 64
fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let at = |i: usize| part.get(i).copied().map_or(0, u32::from);
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            out.push(if digit <= part.len() {
                char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63])
            } else {
                '='
            });
        }
    }
    out
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let last = text.len().saturating_sub(4);
    if text.len() % 4 != 0 {
        return None;
    }
    for (i, part) in text.chunks(4).enumerate() {
        let padding = part.iter().rev().take_while(|c| **c == b'=').count();
        if padding > 2 || padding > 0 && i * 4 != last {
            return None;
        }
        let mut bits = 0;
        for c in part.iter().take(4 - padding) {
            bits = bits << 6 | value(*c)?;
        }
        bits <<= 6 * padding;
        let [_, bytes @ ..] = u32::to_be_bytes(bits);
        let (whole, rest) = bytes.split_at(3 - padding);
        if rest.iter().any(|byte| *byte != 0) {
            return None; // bits are left over
        }
        out.extend_from_slice(whole);
    }
    Some(out)
}

const fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn base64() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"\xfb\xff\xfe", "+//+"),
            (b"\0\0\0\0", "AAAAAA=="),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(encode(&all).as_bytes()), Some(all));
        for text in [
            "Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zg==Zg==", "Zh==", "Zm9=", "Z m8", "Zm8\n", "_-8=", "Zg=a",
            "ä===",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
