//! Pictures: from base64 and PNG to pixels, and back.

use std::io::Cursor;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD};
use fast_image_resize::images::Image;
use fast_image_resize::{FilterType, MulDiv, PixelType, ResizeAlg, ResizeOptions, Resizer};
use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Limits, Reader, Transformations};
use toolsrv::Error;

use crate::size::Plan;
use crate::{Filter, Info};

/// What the decoder may allocate beside the pixels, which are ours.
const DECODER_MEMORY: usize = 8 << 20;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A picture in memory: 4 bytes for each pixel, red, green, blue and alpha.
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pixels: Vec<u8>,
}

impl Picture {
    /// Decodes a PNG. What its header claims is put before check; nothing is allocated for what that refuses.
    pub fn decode(text: &str, check: impl FnOnce(u32, u32) -> Result<(), Error>) -> Result<Self, Error> {
        let file = file(text)?;
        let mut reader = open(&file, Transformations::normalize_to_color8() | Transformations::ALPHA)?;
        let (width, height) = (reader.info().width, reader.info().height);
        check(width, height)?;
        let size = reader.output_buffer_size().ok_or_else(|| broken("it is too large"))?;
        let mut pixels = vec![0; size];
        let frame = reader.next_frame(&mut pixels).map_err(|e| broken(&e.to_string()))?;
        let mut pixels = match frame.color_type {
            ColorType::Rgba => pixels,
            ColorType::GrayscaleAlpha => {
                pixels.as_chunks().0.iter().flat_map(|[gray, alpha]| [*gray, *gray, *gray, *alpha]).collect()
            }
            _ => return Err(broken("its kind of colours is not known")),
        };
        pixels.truncate(width as usize * height as usize * 4);
        Ok(Self { width, height, pixels })
    }

    /// Makes the picture of a plan. Colours of transparent pixels don't bleed into others.
    pub fn resize(self, plan: &Plan, filter: Filter) -> Result<Self, Error> {
        let failed =
            |e: &dyn std::fmt::Display| Error::new(format!("The image can't be resized: {e}.")).code("bad_size");
        let opaque = self.is_opaque();
        let mut from =
            Image::from_vec_u8(self.width, self.height, self.pixels, PixelType::U8x4).map_err(|e| failed(&e))?;
        let mut to = Image::new(plan.width, plan.height, PixelType::U8x4);
        let algorithm = match filter {
            Filter::Lanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
            Filter::Linear => ResizeAlg::Convolution(FilterType::Bilinear),
            Filter::Nearest => ResizeAlg::Nearest,
        };
        let blend = !opaque && !matches!(filter, Filter::Nearest);
        let options = ResizeOptions::new()
            .resize_alg(algorithm)
            .crop(plan.left, plan.top, plan.cut_width, plan.cut_height)
            .use_alpha(false); // done here in place, which saves a copy
        if blend {
            MulDiv::new().multiply_alpha_inplace(&mut from).map_err(|e| failed(&e))?;
        }
        Resizer::new().resize(&from, &mut to, &options).map_err(|e| failed(&e))?;
        if blend {
            MulDiv::new().divide_alpha_inplace(&mut to).map_err(|e| failed(&e))?;
        }
        Ok(Self { width: plan.width, height: plan.height, pixels: to.into_vec() })
    }

    /// Writes a PNG in base64, with as few channels as the picture needs.
    pub fn encode(self) -> Result<String, Error> {
        let gray = self.pixels.as_chunks().0.iter().all(|[r, g, b, _]| r == g && g == b);
        let opaque = self.is_opaque();
        let (color, keep): (_, &[usize]) = match (gray, opaque) {
            (true, true) => (ColorType::Grayscale, &[0]),
            (true, false) => (ColorType::GrayscaleAlpha, &[0, 3]),
            (false, true) => (ColorType::Rgb, &[0, 1, 2]),
            (false, false) => (ColorType::Rgba, &[0, 1, 2, 3]),
        };
        let mut pixels = self.pixels;
        let count = pixels.len() / 4;
        for pixel in 0..count {
            for (i, channel) in keep.iter().enumerate() {
                pixels[pixel * keep.len() + i] = pixels[pixel * 4 + channel];
            }
        }
        pixels.truncate(count * keep.len());
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(color);
        encoder.set_depth(BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&pixels)?;
            writer.finish()
        });
        written.map_err(|e| Error::new(format!("The result can't be written as PNG: {e}.")).code("bad_size"))?;
        drop(pixels);
        if file.len() > 3_000_000 {
            return Err(Error::new(
                "The result has more than 3 MB, too much for an answer: ask for a smaller width and height.",
            )
            .code("too_large"));
        }
        Ok(STANDARD.encode(&file))
    }

    fn is_opaque(&self) -> bool {
        self.pixels.as_chunks().0.iter().all(|[.., alpha]: &[u8; 4]| *alpha == 255)
    }
}

/// Reads what the header of a PNG says.
pub fn info(text: &str) -> Result<Info, Error> {
    let file = file(text)?;
    let reader = open(&file, Transformations::IDENTITY)?;
    let info = reader.info();
    let color = match info.color_type {
        ColorType::Grayscale => "grayscale",
        ColorType::Rgb => "rgb",
        ColorType::Indexed => "indexed",
        ColorType::GrayscaleAlpha => "grayscale-alpha",
        ColorType::Rgba => "rgb-alpha",
    };
    let animated = info.animation_control.is_some();
    Ok(Info {
        width: info.width,
        height: info.height,
        color,
        bit_depth: info.bit_depth as u8,
        animated,
        bytes: file.len(),
    })
}

fn open(file: &[u8], transformations: Transformations) -> Result<Reader<Cursor<&[u8]>>, Error> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(file), Limits { bytes: DECODER_MEMORY });
    decoder.set_transformations(transformations);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.read_info().map_err(|e| match e {
        DecodingError::LimitsExceeded => Error::new("The image is too large: its rows are too long.").code("too_large"),
        e => broken(&e.to_string()),
    })
}

/// Decodes base64, and looks whether it is a PNG at all.
fn file(text: &str) -> Result<Vec<u8>, Error> {
    let text = text.trim();
    let text = match text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((_, rest)) => rest,
        None => text,
    };
    let file = LENIENT
        .decode(text)
        .map_err(|e| Error::new(format!("The argument \"image\" is not base64: {e}.")).code("bad_encoding"))?;
    let kind = match file.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => return Ok(file),
        [0xff, 0xd8, 0xff, ..] => "a JPEG",
        [b'G', b'I', b'F', b'8', ..] => "a GIF",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "a WebP image",
        [b'<', ..] => "an SVG image or a web page",
        [] => "empty",
        _ => "something else",
    };
    Err(Error::new(format!("The argument \"image\" has to be a PNG, and this is {kind}: convert it first."))
        .code("not_png"))
}

fn broken(what: &str) -> Error {
    Error::new(format!("The PNG is damaged: {}.", what.trim_end_matches('.'))).code("bad_image")
}
