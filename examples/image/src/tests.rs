use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use png::{BitDepth, ColorType};
use serde_json::{Value, json};

use crate::MODULE;

fn call(tool: &str, arguments: Value) -> Result<Value, Value> {
    toolsrv::testing::call(&MODULE, tool, &arguments.to_string()).map_err(|e| e.to_json().parse().unwrap_or_default())
}

/// Writes a PNG.
fn png(width: u32, height: u32, color: ColorType, depth: BitDepth, data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette([0, 0, 0, 255, 0, 0].as_slice());
        encoder.set_trns([255, 0].as_slice());
    }
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(data).expect("pixels");
    writer.finish().expect("an end");
    file
}

/// Writes only a header and the start of the data, whatever the header claims.
fn claim(width: u32, height: u32, data: &[u8]) -> String {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = width.to_be_bytes().to_vec();
    header.extend(height.to_be_bytes());
    header.extend([8, 6, 0, 0, 0]);
    for (kind, content) in [(b"IHDR", header.as_slice()), (b"IDAT", data)] {
        file.extend((content.len() as u32).to_be_bytes());
        let start = file.len();
        file.extend(kind);
        file.extend(content);
        let sum = crc(&file[start..]);
        file.extend(sum.to_be_bytes());
    }
    STANDARD.encode(file)
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

/// Reads a result: its size, channels and pixels.
fn read(result: &Value) -> (u32, u32, ColorType, Vec<u8>) {
    let file = STANDARD.decode(result["image"].as_str().unwrap_or_default()).expect("base64");
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let frame = reader.next_frame(&mut pixels).expect("pixels");
    assert_eq!((&json!(frame.width), &json!(frame.height)), (&result["width"], &result["height"]));
    (frame.width, frame.height, frame.color_type, pixels)
}

#[test]
fn examples() {
    toolsrv::testing::examples(&MODULE);
}

#[test]
fn kinds() {
    use BitDepth::{Eight, One, Sixteen};
    use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    type Test<'a> = (&'a str, ColorType, BitDepth, &'a [u8], ColorType, &'a [u8]);
    let tests: [Test; 9] = [
        ("gray", Grayscale, Eight, &[0, 255], Grayscale, &[0, 255]),
        ("black and white", Grayscale, One, &[0b0100_0000], Grayscale, &[0, 255]),
        ("deep gray", Grayscale, Sixteen, &[0, 0, 255, 255], Grayscale, &[0, 255]),
        ("gray and clear", GrayscaleAlpha, Eight, &[9, 255, 7, 0], GrayscaleAlpha, &[9, 255, 7, 0]),
        ("colours", Rgb, Eight, &[1, 2, 3, 4, 5, 6], Rgb, &[1, 2, 3, 4, 5, 6]),
        ("colours that are gray", Rgb, Eight, &[1, 1, 1, 2, 2, 2], Grayscale, &[1, 2]),
        ("a palette with a clear colour", Indexed, One, &[0b0100_0000], Rgba, &[0, 0, 0, 255, 255, 0, 0, 0]),
        ("opaque all the same", Rgba, Eight, &[1, 2, 3, 255, 4, 5, 6, 255], Rgb, &[1, 2, 3, 4, 5, 6]),
        ("half clear", Rgba, Eight, &[1, 2, 3, 128, 4, 5, 6, 255], Rgba, &[1, 2, 3, 128, 4, 5, 6, 255]),
    ];
    for (name, color, depth, data, want_color, want) in tests {
        let image = STANDARD.encode(png(2, 1, color, depth, data));
        let result = call("resize", json!({"image": image, "width": 2, "filter": "nearest"})).expect(name);
        assert_eq!(read(&result), (2, 1, want_color, want.to_vec()), "{name}");
    }
}

#[test]
fn sizes() {
    let image = STANDARD.encode(png(40, 20, ColorType::Grayscale, BitDepth::Eight, &[7; 800]));
    let tests = [
        ("by width", json!({"width": 10}), (10, 5)),
        ("by height", json!({"height": 10}), (20, 10)),
        ("larger", json!({"width": 80}), (80, 40)),
        ("never nothing", json!({"width": 1}), (1, 1)),
        ("within a square", json!({"width": 10, "height": 10}), (10, 5)),
        ("within what is high", json!({"width": 10, "height": 100}), (10, 5)),
        ("over a square", json!({"width": 10, "height": 10, "fit": "cover"}), (10, 10)),
        ("over what is high", json!({"width": 3, "height": 100, "fit": "cover"}), (3, 100)),
        ("distorted", json!({"width": 10, "height": 10, "fit": "fill"}), (10, 10)),
        ("linear", json!({"width": 13, "filter": "linear"}), (13, 7)),
        ("the largest side", json!({"width": 4096, "height": 1, "fit": "fill"}), (4096, 1)),
    ];
    for (name, mut arguments, (width, height)) in tests {
        arguments["image"] = json!(image);
        let (got_width, got_height, color, pixels) = read(&call("resize", arguments).expect(name));
        assert_eq!((got_width, got_height, color), (width, height, ColorType::Grayscale), "{name}");
        assert!(pixels.iter().all(|pixel| *pixel == 7), "{name}: a gray area stays one");
    }
}

/// What is cut off is the same on both sides, and the clear pixels' colour is seen nowhere.
#[test]
fn pixels() {
    let stripes = STANDARD.encode(png(4, 1, ColorType::Grayscale, BitDepth::Eight, &[0, 100, 200, 250]));
    let middle = json!({"image": stripes, "width": 2, "height": 1, "fit": "cover", "filter": "nearest"});
    assert_eq!(read(&call("resize", middle).expect("cover")).3, [100, 200]);

    let edge = [[255, 0, 0, 255], [255, 0, 0, 255], [0, 255, 0, 0], [0, 255, 0, 0]].concat();
    let edge = STANDARD.encode(png(4, 1, ColorType::Rgba, BitDepth::Eight, &edge));
    let (.., pixels) = read(&call("resize", json!({"image": edge, "width": 1, "filter": "linear"})).expect("blend"));
    assert!(
        matches!(pixels.as_slice(), [250..=255, 0..=5, 0, 100..=155]),
        "got {pixels:?}, want half a red and no green"
    );
}

#[test]
fn infos() {
    let image = STANDARD.encode(png(3, 2, ColorType::Indexed, BitDepth::One, &[0, 0]));
    let want = json!({"width": 3, "height": 2, "color": "indexed", "bit_depth": 1, "animated": false, "bytes": 99});
    for image in
        [image.clone(), format!("data:image/png;base64,{image}"), format!("\n{}\n", image.trim_end_matches('='))]
    {
        let mut got = call("info", json!({ "image": image })).expect("info");
        got["bytes"] = json!(99);
        assert_eq!(got, want);
    }
    let claimed = call("info", json!({"image": claim(100_000, 90_000, &[])})).expect("a header is enough");
    assert_eq!(claimed["width"], 100_000, "{claimed}");
}

#[test]
fn progress() {
    let image = STANDARD.encode(png(2, 1, ColorType::Grayscale, BitDepth::Eight, &[0, 255]));
    let (reports, result) =
        toolsrv::testing::progress(&MODULE, "resize", &json!({"image": image, "width": 1}).to_string());
    assert!(result.is_ok(), "{result:?}");
    let steps: Vec<_> = reports.iter().map(|r| (r.done, r.total, r.message.as_str())).collect();
    assert_eq!(steps, [(0.0, Some(3.0), "decoding"), (1.0, Some(3.0), "resizing"), (2.0, Some(3.0), "encoding")]);
}

#[test]
fn refused() {
    let good = png(2, 2, ColorType::Grayscale, BitDepth::Eight, &[1, 2, 3, 4]);
    let image = STANDARD.encode(&good);
    let with = |mut arguments: Value, image: &str| {
        arguments["image"] = json!(image);
        arguments
    };
    let mut flipped = good.clone();
    flipped[45] ^= 1;
    let large = STANDARD.encode(png(2000, 2000, ColorType::Grayscale, BitDepth::One, &vec![0; 250 * 2000]));
    let tests = [
        ("no size", with(json!({}), &image), "bad_size", "Neither \"width\" nor \"height\" is given"),
        ("no width", with(json!({"width": 0}), &image), "bad_size", "\"width\" has to be 1 to 4096 pixels"),
        ("a large height", with(json!({"height": 4097}), &image), "bad_size", "\"height\" has to be 1 to 4096 pixels"),
        ("nothing", with(json!({"width": 1}), ""), "not_png", "has to be a PNG, and this is empty"),
        ("no base64", with(json!({"width": 1}), "*"), "bad_encoding", "is not base64"),
        ("text", with(json!({"width": 1}), "aGVsbG8="), "not_png", "this is something else"),
        ("a JPEG", with(json!({"width": 1}), "/9j/4AAQ"), "not_png", "this is a JPEG: convert it first"),
        ("a GIF", with(json!({"width": 1}), "R0lGODlh"), "not_png", "a GIF"),
        ("an SVG", with(json!({"width": 1}), "PHN2Zz4="), "not_png", "an SVG image or a web page"),
        (
            "half a PNG",
            with(json!({"width": 1}), &STANDARD.encode(&good[..good.len() - 20])),
            "bad_image",
            "The PNG is damaged",
        ),
        ("a header alone", with(json!({"width": 1}), &STANDARD.encode(&good[..8])), "bad_image", "The PNG is damaged"),
        ("a flipped bit", with(json!({"width": 1}), &STANDARD.encode(&flipped)), "bad_image", "The PNG is damaged"),
        ("no pixels", with(json!({"width": 1}), &claim(0, 10, &[])), "bad_image", "The PNG is damaged"),
        (
            "billions of pixels",
            with(json!({"width": 1}), &claim(100_000, 100_000, &[])),
            "too_large",
            "has 100000 x 100000 pixels",
        ),
        ("all pixels that there are", with(json!({"width": 1}), &claim(u32::MAX >> 1, u32::MAX >> 1, &[])), "", ""),
        ("a long line", with(json!({"width": 1}), &claim(1 << 30, 1, &[])), "", ""),
        ("claims without data", with(json!({"width": 1}), &claim(2000, 2000, &[])), "bad_image", "The PNG is damaged"),
        (
            "too much in between",
            with(json!({"width": 4096, "height": 4096}), &large),
            "too_large",
            "Making 4096 x 4096 pixels of 2000 x 2000 takes too much memory",
        ),
    ];
    for (name, arguments, code, message) in tests {
        let error = call("resize", arguments).expect_err(name);
        assert!(code.is_empty() || error["code"] == code, "{name}: got {error}, want {code}");
        let got = error["message"].as_str().unwrap_or_default();
        assert!(got.contains(message), "{name}: got {got:?}, want it to contain {message:?}");
    }
    let bomb = call("resize", json!({"image": large, "width": 20})).expect("a megabyte of nothing");
    assert_eq!(bomb["height"], 20);
}

/// Whatever stands in a file whose checksums are right, it ends in an image or a sentence.
#[test]
fn anything() {
    let seeds = [
        png(5, 3, ColorType::Rgba, BitDepth::Eight, &[9; 60]),
        png(9, 3, ColorType::Indexed, BitDepth::One, &[0x55; 6]),
        png(3, 3, ColorType::Grayscale, BitDepth::Sixteen, &[1; 18]),
    ];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for i in 0..10_000 {
        let mut file = seeds[i % seeds.len()].clone();
        for _ in 0..=random(3) {
            let at = 8 + random(file.len() - 8);
            file[at] = random(256) as u8;
        }
        let mut at = 8;
        while at + 12 <= file.len() {
            let length = u32::from_be_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize;
            let end = at.saturating_add(8).saturating_add(length);
            if end + 4 > file.len() {
                break;
            }
            let sum = crc(&file[at + 4..end]);
            file[end..end + 4].copy_from_slice(&sum.to_be_bytes());
            at = end + 4;
        }
        let image = STANDARD.encode(file);
        if let Err(error) = call("resize", json!({"image": image, "width": 1 + random(9), "height": 7, "fit": "cover"}))
        {
            assert!(error["code"].is_string(), "{image}: {error}");
        }
    }
}
