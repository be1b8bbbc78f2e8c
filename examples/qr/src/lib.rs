//! QR codes: `qr/svg` and `qr/png`.

mod drawing;
mod raster;

use qrcodegen::{DataTooLong, QrCode, QrCodeEcc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::{Bytes, Error, tool};

#[derive(Deserialize, JsonSchema)]
struct Code {
    /// What a scanner reads, such as an address that starts with "https://". Codes with less text are larger and read
    /// better.
    #[schemars(length(min = 1, max = 7089))]
    text: String,
    /// How much of the code may be dirty or hidden: "low" 7 %, "medium" 15 %, "quartile" 25 %, "high" 30 %. A higher
    /// level needs more modules.
    #[serde(default)]
    error_correction: Correction,
    /// Width and height of the image in pixels. It is a vector image, so it can be shown at any size.
    #[serde(default = "size")]
    #[schemars(range(min = 16, max = 10_000))]
    size: u32,
    /// The width of the empty border in modules, the squares of a code. Scanners need 4.
    #[serde(default = "border")]
    #[schemars(range(min = 0, max = 20))]
    border: i32,
    /// The colour of the dark modules, like "#1a2b3c". It has to be much darker than the other.
    #[serde(default = "black")]
    #[schemars(regex(pattern = r"^#[0-9A-Fa-f]{6}$"))]
    dark: String,
    /// The colour of the background, like "#ffffff", or "none" for a transparent one.
    #[serde(default = "white")]
    #[schemars(regex(pattern = r"^(#[0-9A-Fa-f]{6}|none)$"))]
    light: String,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Correction {
    Low,
    #[default]
    Medium,
    Quartile,
    High,
}

fn size() -> u32 {
    256
}

fn border() -> i32 {
    4
}

fn black() -> String {
    "#000000".to_string()
}

fn white() -> String {
    "#ffffff".to_string()
}

#[derive(Serialize, JsonSchema)]
struct Drawing {
    /// The image, a whole SVG document.
    svg: String,
    /// The version of the code, 1 to 40: it has 17 + 4 times the version modules on each side.
    version: u8,
    /// How many modules each side of the code has, without the border.
    modules: i32,
}

/// Draw a QR code as an SVG image: for links, contacts, Wi-Fi access or any short text that people scan with a phone.
#[tool(
    title = "Draw a QR code as SVG",
    annotations(read_only = true, open_world = false),
    icon(
        src = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAARklEQVR42nXMsRXAMAhDQTMG04Yx6DSeZ1AT4ljhuQrFVeiPWjfCwgQIivT0f87f2e7U12vAOUX6fTXFhiXAggjb0cWbegCl3E5t4amtfQAAAABJRU5ErkJggg==",
        sizes = ["32x32"]
    ),
    example(
        arguments = r#"{"text": "HI", "border": 0, "size": 21, "error_correction": "low"}"#,
        result = r##"{"svg":"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"21\" height=\"21\" viewBox=\"0 0 21 21\" shape-rendering=\"crispEdges\"><path fill=\"#ffffff\" d=\"M0 0h21v21H0z\"/><path stroke=\"#000000\" d=\"M0 0.5h7M9 0.5h2M14 0.5h7M0 1.5h1M6 1.5h1M12 1.5h1M14 1.5h1M20 1.5h1M0 2.5h1M2 2.5h3M6 2.5h1M10 2.5h1M14 2.5h1M16 2.5h3M20 2.5h1M0 3.5h1M2 3.5h3M6 3.5h1M10 3.5h1M14 3.5h1M16 3.5h3M20 3.5h1M0 4.5h1M2 4.5h3M6 4.5h1M8 4.5h1M10 4.5h1M12 4.5h1M14 4.5h1M16 4.5h3M20 4.5h1M0 5.5h1M6 5.5h1M14 5.5h1M20 5.5h1M0 6.5h7M8 6.5h1M10 6.5h1M12 6.5h1M14 6.5h7M8 7.5h3M2 8.5h2M6 8.5h5M13 8.5h2M16 8.5h1M3 9.5h2M7 9.5h1M9 9.5h1M13 9.5h3M18 9.5h3M2 10.5h2M5 10.5h2M8 10.5h2M12 10.5h1M14 10.5h4M19 10.5h1M1 11.5h2M4 11.5h1M7 11.5h2M11 11.5h3M19 11.5h1M1 12.5h1M3 12.5h1M6 12.5h1M8 12.5h1M13 12.5h2M16 12.5h1M18 12.5h1M8 13.5h2M12 13.5h2M15 13.5h1M18 13.5h2M0 14.5h7M8 14.5h3M12 14.5h3M16 14.5h1M18 14.5h2M0 15.5h1M6 15.5h1M9 15.5h2M12 15.5h3M17 15.5h1M19 15.5h1M0 16.5h1M2 16.5h3M6 16.5h1M9 16.5h6M17 16.5h1M20 16.5h1M0 17.5h1M2 17.5h3M6 17.5h1M8 17.5h1M10 17.5h1M16 17.5h1M19 17.5h1M0 18.5h1M2 18.5h3M6 18.5h1M8 18.5h1M16 18.5h3M0 19.5h1M6 19.5h1M9 19.5h1M13 19.5h1M16 19.5h2M0 20.5h7M9 20.5h1M11 20.5h2M14 20.5h2M17 20.5h1M19 20.5h1\"/></svg>","version":1,"modules":21}"##
    )
)]
fn svg(code: Code) -> Result<Drawing, Error> {
    check_colours(&code.dark, &code.light)?;
    let drawn = encode(&code.text, code.error_correction)?;
    let light = (code.light != "none").then_some(code.light.as_str());
    Ok(Drawing {
        svg: drawing::draw(&drawn, code.border.clamp(0, 20), code.size, &code.dark, light),
        version: drawn.version().value(),
        modules: drawn.size(),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Pixels {
    /// What a scanner reads, such as an address that starts with "https://". Codes with less text are larger and read
    /// better.
    #[schemars(length(min = 1, max = 7089))]
    text: String,
    /// How much of the code may be dirty or hidden: "low" 7 %, "medium" 15 %, "quartile" 25 %, "high" 30 %. A higher
    /// level needs more modules.
    #[serde(default)]
    error_correction: Correction,
    /// Width and height of each module in pixels.
    #[serde(default = "scale")]
    #[schemars(range(min = 1, max = 20))]
    scale: u32,
    /// The width of the empty border in modules, the squares of a code. Scanners need 4.
    #[serde(default = "border")]
    #[schemars(range(min = 0, max = 20))]
    border: i32,
    /// The colour of the dark modules, like "#1a2b3c". It has to be much darker than the other.
    #[serde(default = "black")]
    #[schemars(regex(pattern = r"^#[0-9A-Fa-f]{6}$"))]
    dark: String,
    /// The colour of the background, like "#ffffff", or "none" for a transparent one.
    #[serde(default = "white")]
    #[schemars(regex(pattern = r"^(#[0-9A-Fa-f]{6}|none)$"))]
    light: String,
}

fn scale() -> u32 {
    8
}

/// A PNG image.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("contentMediaType" = "image/png"))]
struct Png(Bytes);

/// Draw a QR code as a PNG image: for links, contacts, Wi-Fi access or any short text that people scan with a phone.
#[tool(
    title = "Draw a QR code as PNG",
    annotations(read_only = true, open_world = false),
    icon(
        src = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAARklEQVR42nXMsRXAMAhDQTMG04Yx6DSeZ1AT4ljhuQrFVeiPWjfCwgQIivT0f87f2e7U12vAOUX6fTXFhiXAggjb0cWbegCl3E5t4amtfQAAAABJRU5ErkJggg==",
        sizes = ["32x32"]
    ),
    example(
        arguments = r#"{"text": "HI", "border": 0, "scale": 1, "error_correction": "low"}"#,
        result = r#""iVBORw0KGgoAAAANSUhEUgAAABUAAAAVAQMAAACT2TfVAAAABlBMVEX///8AAABVwtN+AAAAX0lEQVR42gFUAKv/Av5j+AKEpxACOBjgAgAAAAIAiAACyFggAnyp8AICNQgCMwaAAuZhuAIdhJgCM9FAAunqkAKuR5AC/iGAAoSAoAI4EPgCACJIAgDgUALIxOACfBeQXsgb1CnVcp0AAAAASUVORK5CYII=""#
    )
)]
fn png(code: Pixels) -> Result<Png, Error> {
    check_colours(&code.dark, &code.light)?;
    let drawn = encode(&code.text, code.error_correction)?;
    let file = raster::draw(&drawn, code.border.clamp(0, 20), code.scale.clamp(1, 20), &code.dark, &code.light)
        .map_err(|e| Error::new(format!("The image can't be written as PNG: {e}.")))?;
    Ok(Png(file.into()))
}

toolsrv::export! { namespace: "qr", tools: [svg, png] }

fn encode(text: &str, correction: Correction) -> Result<QrCode, Error> {
    let level = match correction {
        Correction::Low => QrCodeEcc::Low,
        Correction::Medium => QrCodeEcc::Medium,
        Correction::Quartile => QrCodeEcc::Quartile,
        Correction::High => QrCodeEcc::High,
    };
    QrCode::encode_text(text, level).map_err(|e| too_long(text, level, &e))
}

/// Colours become part of the image's source: they are checked here, whatever the host checks.
fn check_colours(dark: &str, light: &str) -> Result<(), Error> {
    for (name, colour) in [("dark", dark), ("light", light)] {
        if !(is_colour(colour) || name == "light" && colour == "none") {
            return Err(Error::new(format!("The argument \"{name}\" is not a colour: write it like \"#1a2b3c\"."))
                .code("bad_colour"));
        }
    }
    Ok(())
}

fn is_colour(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn too_long(text: &str, level: QrCodeEcc, error: &DataTooLong) -> Error {
    let most = match level {
        QrCodeEcc::Low => 2953,
        QrCodeEcc::Medium => 2331,
        QrCodeEcc::Quartile => 1663,
        QrCodeEcc::High => 1273,
    };
    let (data, room) = match error {
        DataTooLong::SegmentTooLong => (None, None),
        DataTooLong::DataOverCapacity(data, room) => (Some(data), Some(room)),
    };
    Error::new(format!(
        "The text has {} bytes and does not fit into a QR code: with this error correction the largest holds {most} bytes (more only where all \
         are digits, or capitals and digits). Shorten the text, or lower \"error_correction\".",
        text.len()
    ))
    .code("too_long")
    .data(serde_json::json!({ "bits": data, "room": room }))
}

#[cfg(test)]
mod tests;
