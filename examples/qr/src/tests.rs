use serde_json::{Value, json};

use crate::MODULE;

fn draw(arguments: Value) -> Result<Value, Value> {
    toolsrv::testing::call(&MODULE, "svg", &arguments.to_string()).map_err(|e| e.to_json().parse().unwrap_or_default())
}

#[test]
fn examples() {
    toolsrv::testing::examples(&MODULE);
}

/// Reads the dark modules back from the path.
fn modules(drawing: &Value) -> Vec<Vec<bool>> {
    let side = drawing["modules"].as_u64().unwrap_or_default() as usize + 8;
    let mut rows = vec![vec![false; side]; side];
    let svg = drawing["svg"].as_str().unwrap_or_default();
    let path = svg.rsplit_once(" d=\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(path, _)| path);
    for run in path.split('M').skip(1) {
        let numbers: Vec<usize> = run.split([' ', 'h']).filter_map(|n| n.trim_end_matches(".5").parse().ok()).collect();
        let [x, y, length] = numbers.as_slice() else { panic!("{run:?} is no run") };
        rows[*y][*x..x + length].fill(true);
    }
    rows
}

/// A code has a finder pattern, seven modules on each side, in three of its corners.
#[test]
fn finders() {
    let rows = modules(&draw(json!({"text": "https://example.com/"})).expect("a code"));
    let last = rows.len() - 4 - 7;
    for (x, y) in [(4, 4), (last, 4), (4, last)] {
        for i in 0..7 {
            assert!(rows[y][x + i] && rows[y + 6][x + i] && rows[y + i][x] && rows[y + i][x + 6], "finder at {x}, {y}");
            assert!((1..6).contains(&i) || rows[y + 3][x + 3], "the middle at {x}, {y}");
        }
        assert!(!rows[y + 1][x + 1] && rows[y + 2][x + 2], "the ring at {x}, {y}");
    }
    assert!(rows[..4].iter().flatten().all(|dark| !dark), "the border is empty");
}

#[test]
fn sizes() {
    let tests = [
        ("digits", json!({"text": "1".repeat(7089), "error_correction": "low"}), Ok(40)),
        ("capitals", json!({"text": "A".repeat(4296), "error_correction": "low"}), Ok(40)),
        ("bytes", json!({"text": "a".repeat(2953), "error_correction": "low"}), Ok(40)),
        (
            "too many bytes",
            json!({"text": "a".repeat(2954), "error_correction": "low"}),
            Err(
                "has 2954 bytes and does not fit into a QR code: with this error correction the largest holds 2953 bytes",
            ),
        ),
        ("too many for the level", json!({"text": "a".repeat(2332)}), Err("holds 2331 bytes")),
        ("characters of several bytes", json!({"text": "é".repeat(2000)}), Err("has 4000 bytes")),
        ("far too many", json!({"text": "a".repeat(1_000_000)}), Err("has 1000000 bytes")),
        ("little", json!({"text": "a"}), Ok(1)),
        ("little, and safe", json!({"text": "https://example.com", "error_correction": "high"}), Ok(3)),
    ];
    for (name, arguments, want) in tests {
        match (draw(arguments), want) {
            (Ok(drawing), Ok(version)) => assert_eq!(drawing["version"], version, "{name}"),
            (Err(error), Err(message)) => {
                assert_eq!(error["code"], "too_long", "{name}: {error}");
                assert!(
                    error["message"].as_str().is_some_and(|got| got.contains(message)),
                    "{name}: got {error}, want {message}"
                );
            }
            (got, want) => panic!("{name}: got {got:?}, want {want:?}"),
        }
    }
}

#[test]
fn colours() {
    let svg = |dark: &str, light: &str| {
        draw(json!({"text": "x", "dark": dark, "light": light})).map(|d| d["svg"].to_string())
    };
    let both = svg("#12aBef", "#fefefe").expect("colours");
    assert!(both.contains("#12aBef") && both.contains("#fefefe"), "{both}");
    let clear = svg("#000000", "none").expect("no background");
    assert!(!clear.contains("#ffffff") && clear.matches("<path").count() == 1, "{clear}");
    for (dark, light) in [
        ("red", "#ffffff"),
        ("#fff", "#ffffff"),
        ("none", "#ffffff"),
        ("#00000g", "none"),
        ("#000000", "\"/><script>"),
        ("#0000€", "none"),
    ] {
        let error = svg(dark, light).expect_err(dark);
        assert_eq!(error["code"], "bad_colour", "{dark} on {light}: {error}");
    }
}

/// The image is the drawing, module by module: read back with the crate that others use.
#[test]
fn png() {
    for (arguments, light) in [
        (json!({"text": "https://example.com/", "scale": 3}), [0xff, 0xff, 0xff]),
        (json!({"text": "https://example.com/", "scale": 1, "light": "none", "dark": "#12aBef"}), [0xff, 0xff, 0xff]),
        (json!({"text": "https://example.com/", "scale": 20, "light": "#fefe00"}), [0xfe, 0xfe, 0]),
    ] {
        let result = toolsrv::testing::call(&MODULE, "png", &arguments.to_string()).expect("an image");
        let toolsrv::Bytes(file) = serde_json::from_value(result).expect("base64");
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let frame = reader.next_frame(&mut pixels).expect("pixels");
        let info = reader.info();
        let palette = info.palette.as_deref().expect("a palette");
        assert_eq!(palette[..3], light, "{arguments}");
        assert_eq!(info.trns.is_some(), arguments["light"] == "none", "{arguments}");

        let drawn = modules(&draw(json!({"text": "https://example.com/"})).expect("a code"));
        let scale = arguments["scale"].as_u64().unwrap_or_default() as usize;
        assert_eq!(frame.width as usize, drawn.len() * scale, "{arguments}");
        for y in 0..frame.height as usize {
            for x in 0..frame.width as usize {
                let dark = pixels[y * frame.line_size + x / 8] >> (7 - x % 8) & 1 == 1;
                assert_eq!(dark, drawn[y / scale][x / scale], "{arguments}: the pixel {x}, {y}");
            }
        }
    }
    let error = toolsrv::testing::call(&MODULE, "png", r#"{"text": "a", "dark": "none"}"#).expect_err("a colour");
    assert!(error.to_json().contains("bad_colour"), "{error:?}");
}
