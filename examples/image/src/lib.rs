//! PNG images: `image/resize` and `image/info`.

mod picture;
mod size;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::{Call, Error, tool};

use picture::Picture;

#[derive(Deserialize, JsonSchema)]
struct Resize {
    /// The PNG in base64. "data:image/png;base64," in front does not matter.
    image: String,
    /// The width to fit, in pixels. Without it the width follows from the height.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4096))]
    width: Option<u32>,
    /// The height to fit, in pixels. Without it the height follows from the width.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4096))]
    height: Option<u32>,
    /// What to do where both are given and the shape differs: "contain" makes the whole image fit within, "cover"
    /// fills them and cuts off what stands out, "fill" distorts it.
    #[serde(default)]
    fit: Fit,
    /// How to compute pixels: "lanczos" for photographs, "linear" where softer and faster will do, "nearest" for
    /// pixel art.
    #[serde(default)]
    filter: Filter,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Fit {
    #[default]
    Contain,
    Cover,
    Fill,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Filter {
    #[default]
    Lanczos,
    Linear,
    Nearest,
}

#[derive(Serialize, JsonSchema)]
struct Resized {
    /// The PNG in base64, 8 bits per channel.
    #[schemars(extend("contentEncoding" = "base64", "contentMediaType" = "image/png"))]
    image: String,
    /// Its width in pixels.
    width: u32,
    /// Its height in pixels.
    height: u32,
}

/// Make a PNG image smaller or larger. It keeps its shape where only the width or the height is given; otherwise "fit"
/// decides.
#[tool(
    title = "Resize a PNG image",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"image": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC", "width": 2, "filter": "nearest"}"#,
        result = r#"{"image": "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP5zwACTGCSAQANRwEGjqedBQAAAABJRU5ErkJggg==", "width": 2, "height": 2}"#
    )
)]
fn resize(call: &Call, resize: Resize) -> Result<Resized, Error> {
    call.progress(0.0, 3.0, "decoding");
    let picture = Picture::decode(&resize.image, |width, height| size::check(width, height, &resize))?;
    let plan = size::plan(picture.width, picture.height, &resize)?;
    let (width, height) = (plan.width, plan.height);
    call.progress(1.0, 3.0, "resizing");
    let picture = picture.resize(&plan, resize.filter)?;
    call.progress(2.0, 3.0, "encoding");
    Ok(Resized { image: picture.encode()?, width, height })
}

#[derive(Deserialize, JsonSchema)]
struct Image {
    /// The PNG in base64. "data:image/png;base64," in front does not matter.
    image: String,
}

#[derive(Serialize, JsonSchema)]
struct Info {
    /// Its width in pixels.
    width: u32,
    /// Its height in pixels.
    height: u32,
    /// "grayscale", "rgb", "indexed", "grayscale-alpha" or "rgb-alpha".
    color: &'static str,
    /// Bits per channel, or per pixel of an indexed image.
    bit_depth: u8,
    /// Whether it has several frames (APNG). Tools of this module see the first.
    animated: bool,
    /// The size of the file.
    bytes: usize,
}

/// Report the width, height and kind of a PNG image without decoding it.
#[tool(
    title = "Describe a PNG image",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"image": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"}"#,
        result = r#"{"width": 1, "height": 1, "color": "rgb", "bit_depth": 8, "animated": false, "bytes": 69}"#
    )
)]
fn info(image: Image) -> Result<Info, Error> {
    picture::info(&image.image)
}

toolsrv::export! { namespace: "image", tools: [resize, info] }

#[cfg(test)]
mod tests;
