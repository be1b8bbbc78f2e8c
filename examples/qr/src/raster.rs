//! A QR code as a PNG image with a palette of two colours, one bit for each pixel.

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};
use qrcodegen::QrCode;

/// Draws a code with a border of so many modules, each of so many pixels.
pub fn draw(code: &QrCode, border: i32, scale: u32, dark: &str, light: &str) -> Result<Vec<u8>, EncodingError> {
    let modules = code.size() + 2 * border;
    let side = modules as u32 * scale;
    let row_bytes = side.div_ceil(8) as usize;
    let mut pixels = Vec::with_capacity(row_bytes * side as usize);
    for y in 0..modules {
        let mut row = vec![0u8; row_bytes];
        for x in (0..side).filter(|x| code.get_module((x / scale) as i32 - border, y - border)) {
            row[(x / 8) as usize] |= 0x80 >> (x % 8);
        }
        for _ in 0..scale {
            pixels.extend_from_slice(&row);
        }
    }
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, side, side);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::One);
    encoder.set_palette([rgb(light), rgb(dark)].concat());
    if light == "none" {
        encoder.set_trns(vec![0, 255]);
    }
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::Up); // most rows are those above
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(file)
}

/// Returns the red, green and blue of a colour like "#1a2b3c", or white.
fn rgb(colour: &str) -> [u8; 3] {
    let value = colour.strip_prefix('#').and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xff_ffff);
    let [_, red, green, blue] = value.to_be_bytes();
    [red, green, blue]
}
