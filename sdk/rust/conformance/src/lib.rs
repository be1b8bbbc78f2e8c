//! The Rust guest of the conformance kit: testdata/abi/README.md says what its tools do.

use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolsrv::{Call, Error, Level, tool};

#[derive(Serialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Anything {
    value: Value,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Numbers {
    #[serde(default)]
    int: i64,
    #[serde(default)]
    uint: u64,
    #[serde(default)]
    float: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Parcel {
    #[serde(default = "world")]
    name: String,
    #[serde(default = "three")]
    count: i64,
    #[serde(default = "tags")]
    tags: Vec<String>,
    inner: Option<Inner>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Inner {
    amount: f64,
    #[serde(default = "unit")]
    unit: String,
}

fn world() -> String {
    "world".into()
}

fn three() -> i64 {
    3
}

fn tags() -> Vec<String> {
    vec!["a".into(), "b".into()]
}

fn unit() -> String {
    "kg".into()
}

// It holds itself, so decoding it takes call stack for each level.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Tree {
    name: String,
    #[serde(default)]
    children: Vec<Tree>,
}

#[derive(Deserialize, JsonSchema)]
struct Failure {
    message: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    status: i64,
    #[serde(default)]
    data: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
struct Lines {
    lines: Vec<Line>,
}

#[derive(Deserialize, JsonSchema)]
struct Line {
    level: LineLevel,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LineLevel {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    reports: Vec<Report>,
}

#[derive(Deserialize, JsonSchema)]
struct Report {
    done: f64,
    #[serde(default)]
    total: f64,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Repetition {
    text: String,
    #[schemars(range(min = 0, max = 10_000_000))]
    times: i64,
}

/// Return the value.
#[tool(
    title = "Return \"the\" value",
    annotations(read_only = true, destructive = false, idempotent = true, open_world = false),
    icon(src = "https://example.com/echo.svg", mime_type = "image/svg+xml", sizes = ["any"], theme = "dark"),
    icon(src = "data:image/png;base64,iVBORw0KGgo=")
)]
fn echo(arguments: Anything) -> Result<Value, Error> {
    Ok(arguments.value)
}

/// Return the text.
#[tool]
fn text(arguments: Text) -> Result<String, Error> {
    Ok(arguments.text)
}

/// Return the numbers.
#[tool]
fn numbers(arguments: Numbers) -> Result<Numbers, Error> {
    Ok(arguments)
}

/// Return the arguments.
#[tool]
fn defaults(arguments: Parcel) -> Result<Parcel, Error> {
    Ok(arguments)
}

/// Return the tree.
#[tool]
fn tree(arguments: Tree) -> Result<Tree, Error> {
    Ok(arguments)
}

/// Return an object without members.
#[tool]
fn empty() -> Result<Nothing, Error> {
    Ok(Nothing {})
}

/// Return null.
#[tool]
fn null() -> Result<Value, Error> {
    Ok(Value::Null)
}

/// Return a list without elements.
#[tool]
fn list() -> Result<Vec<i64>, Error> {
    Ok(Vec::new())
}

/// Fail as told.
#[tool]
fn fail(arguments: Failure) -> Result<Nothing, Error> {
    let mut error = Error::new(arguments.message);
    if !arguments.code.is_empty() {
        error = error.code(arguments.code);
    }
    if arguments.status != 0 {
        error = error.status(arguments.status.try_into()?);
    }
    if let Some(data) = arguments.data {
        error = error.data(data);
    }
    Err(error)
}

/// Log the lines.
#[tool]
fn log(call: &Call, arguments: Lines) -> Result<Nothing, Error> {
    for line in arguments.lines {
        let level = match line.level {
            LineLevel::Debug => Level::Debug,
            LineLevel::Info => Level::Info,
            LineLevel::Warn => Level::Warn,
            LineLevel::Error => Level::Error,
        };
        call.log(level, line.text);
    }
    Ok(Nothing {})
}

/// Panic with the text.
#[tool(name = "panic")]
#[allow(clippy::panic)]
fn panic_with(arguments: Text) -> Result<Nothing, Error> {
    panic!("{}", arguments.text)
}

/// Count the calls of this sandbox.
#[tool]
fn count() -> Result<i64, Error> {
    static CALLS: AtomicI64 = AtomicI64::new(0); // no tool should keep state: it must not survive a call
    Ok(CALLS.fetch_add(1, Ordering::Relaxed) + 1)
}

/// Return what no other call returns.
#[tool]
fn random() -> Result<String, Error> {
    Ok(format!("{:016x}", toolsrv::random::u64()))
}

/// Return the milliseconds since 1970.
#[tool]
fn clock() -> Result<i64, Error> {
    Ok(toolsrv::now().duration_since(UNIX_EPOCH)?.as_millis().try_into()?)
}

/// Return how many milliseconds the call has left.
#[tool]
fn deadline(call: &Call) -> Result<i64, Error> {
    Ok(call.time_left().map_or(Ok(-1), |left| left.as_millis().try_into())?)
}

/// Report the progress.
#[tool]
fn progress(call: &Call, arguments: Work) -> Result<Nothing, Error> {
    for report in arguments.reports {
        call.progress(report.done, report.total, report.message);
    }
    Ok(Nothing {})
}

/// Write one output, then return another.
#[tool]
fn rewrite() -> Result<String, Error> {
    output_write(br#""first""#);
    Ok("second".into())
}

/// Return the text so many times.
#[tool]
fn repeat(arguments: Repetition) -> Result<String, Error> {
    Ok(arguments.text.repeat(arguments.times.try_into()?))
}

/// Never return.
#[tool]
fn spin() -> Result<Nothing, Error> {
    loop {
        black_box(());
    }
}

/// Take memory until there is none.
#[tool]
fn hoard() -> Result<Nothing, Error> {
    let mut hoarded = Vec::new();
    loop {
        hoarded.push(black_box(vec![1u8; 1 << 20]));
    }
}

toolsrv::export! {
    namespace: "conformance",
    tools: [
        echo, text, numbers, defaults, tree, empty, null, list, fail, log, panic_with, count, random, clock, deadline, progress, rewrite,
        repeat, spin, hoard,
    ],
}

/// Calls the host's function, which an author never does.
#[cfg(target_family = "wasm")]
#[allow(unsafe_code)]
fn output_write(text: &[u8]) {
    #[link(wasm_import_module = "toolsrv_v1")]
    unsafe extern "C" {
        #[link_name = "output_write"]
        fn write(ptr: *const u8, len: usize);
    }
    // SAFETY: the host reads text and keeps no pointer.
    unsafe { write(text.as_ptr(), text.len()) }
}

#[cfg(not(target_family = "wasm"))]
fn output_write(_: &[u8]) {}
