//! A QR code as an SVG image: each row of dark modules side by side is one line, so that the image is small and has
//! no seams in rows.

use std::fmt::Write;

use qrcodegen::QrCode;

/// Draws a code with a border of so many modules, at a size of so many pixels.
pub fn draw(code: &QrCode, border: i32, size: u32, dark: &str, light: Option<&str>) -> String {
    let side = code.size() + 2 * border;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size}\" height=\"{size}\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">"
    );
    if let Some(light) = light {
        let _ = write!(svg, "<path fill=\"{light}\" d=\"M0 0h{side}v{side}H0z\"/>"); // a String takes everything
    }
    let _ = write!(svg, "<path stroke=\"{dark}\" d=\"");
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let run = (x..code.size()).take_while(|x| code.get_module(*x, y)).count() as i32;
            if run > 0 {
                let _ = write!(svg, "M{} {}.5h{run}", x + border, y + border);
            }
            x += run.max(1);
        }
    }
    svg.push_str("\"/></svg>");
    svg
}
