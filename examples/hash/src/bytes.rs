//! Text that stands for bytes: as it is, in hex or in base64.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD};
use toolsrv::Error;

use crate::{Encoding, Output};

/// Base64 that people paste comes with and without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Decodes the argument that has this name. White space at the ends, such as a line's end, is not part of hex and
/// base64.
pub fn decode(name: &str, text: &str, encoding: Encoding) -> Result<Vec<u8>, Error> {
    let wrong =
        |what: String| Error::new(format!("The argument \"{name}\" is not valid: {what}.")).code("bad_encoding");
    match encoding {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Hex => hex(text.trim()).map_err(wrong),
        Encoding::Base64 => {
            let text = text.trim();
            let url = text.contains(['-', '_']);
            let alphabet = if url { alphabet::URL_SAFE } else { alphabet::STANDARD };
            GeneralPurpose::new(&alphabet, LENIENT)
                .decode(text)
                .map_err(|e| wrong(format!("it is not base64 ({e}); set the encoding to utf8 for plain text")))
        }
    }
}

/// Encodes bytes for the result.
pub fn encode(bytes: &[u8], output: Output) -> String {
    match output {
        Output::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Output::Base64 => STANDARD.encode(bytes),
    }
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    if let Some((i, c)) = text.chars().enumerate().find(|(_, c)| !c.is_ascii_hexdigit()) {
        return Err(format!(
            "{:?} at character {} is not a hex digit; set the encoding to utf8 for plain text",
            c,
            i + 1
        ));
    }
    if text.len() % 2 == 1 {
        return Err(format!("hex has two digits for each byte, and it has {} digits", text.len()));
    }
    let digit = |b: &u8| match b {
        b'0'..=b'9' => b - b'0',
        _ => (b | 0x20) - b'a' + 10,
    };
    Ok(text.as_bytes().chunks(2).map(|pair| pair.iter().fold(0, |byte, b| byte << 4 | digit(b))).collect())
}
