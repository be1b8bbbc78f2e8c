//! The types of testdata/derive, under the same names as in the SDK for Go, have the same schemas.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolsrv::{Bytes, Error, tool};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Scalars {
    text: String,
    flag: bool,
    whole: i64,
    count: u64,
    i8: i8,
    i16: i16,
    i32: i32,
    u8: u8,
    u16: u16,
    u32: u32,
    f32: f32,
    f64: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Optional {
    text: Option<String>,
    #[schemars(range(min = 1, max = 9))]
    whole: Option<i64>,
    #[serde(default)]
    texts: Vec<String>,
    point: Option<Point>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Lists {
    texts: Vec<String>,
    matrix: Vec<Vec<f64>>,
    pair: [i64; 2],
    points: Vec<Point>,
    gaps: Vec<Option<i64>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Maps {
    counts: HashMap<String, i64>,
    points: HashMap<String, Point>,
    lists: HashMap<String, Vec<String>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Order {
    customer: String,
    ship: Address,
    bill: Address,
    items: Vec<Item>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Address {
    street: String,
    #[serde(default = "germany")]
    country: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Item {
    name: String,
    price: f64,
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Part {
    code: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Tree {
    name: String,
    #[serde(default)]
    children: Vec<Tree>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(default)]
struct Defaults {
    text: String,
    empty: String,
    whole: i64,
    ratio: f64,
    flag: bool,
    list: Vec<String>,
    #[schemars(transform = without_default)]
    unset: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Bounds {
    #[schemars(range(min = 0, max = 100))]
    percent: i64,
    #[schemars(extend("exclusiveMinimum" = 0))]
    positive: f64,
    #[schemars(extend("exclusiveMaximum" = 1.5))]
    below: f64,
    #[schemars(length(min = 1, max = 5))]
    name: String,
    #[schemars(regex(pattern = r"^[A-Z]{2}-\d+$"))]
    code: String,
    #[schemars(email)]
    mail: String,
    #[schemars(url)]
    link: String,
    #[schemars(length(min = 1, max = 3))]
    words: Vec<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Choices {
    level: Level,
    #[schemars(extend("enum" = [1, 2, 3]))]
    size: i64,
    #[serde(default)]
    order: Direction,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Debug,
    Info,
    Warn,
}

#[derive(Deserialize, Serialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Asc,
    Desc,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Described {
    /// Where to look: a city's name, in any language.
    #[schemars(example = &"Paris", example = &"Rome")]
    city: String,
    /// How many days.
    #[serde(default = "week")]
    #[schemars(example = 1, example = 14)]
    days: i64,
    /// Its place on the map.
    point: Point,
    /// Whatever "else" <there> is.
    extra: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Members {
    point: Point,
    /// What it is.
    point_said: Point,
    points: Vec<Point>,
    /// What it is.
    points_said: Vec<Point>,
    by_name: HashMap<String, Point>,
    /// What it is.
    by_name_said: HashMap<String, Point>,
    level: Level,
    /// What it is.
    level_said: Level,
    words: Words,
    /// What it is.
    words_said: Words,
    table: Table,
    /// What it is.
    table_said: Table,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Maybes {
    point: Option<Point>,
    /// What it is.
    point_said: Option<Point>,
    points: Option<Vec<Point>>,
    /// What it is.
    points_said: Option<Vec<Point>>,
    by_name: Option<HashMap<String, Point>>,
    /// What it is.
    by_name_said: Option<HashMap<String, Point>>,
    level: Option<Level>,
    /// What it is.
    level_said: Option<Level>,
    words: Option<Words>,
    /// What it is.
    words_said: Option<Words>,
    table: Option<Table>,
    /// What it is.
    table_said: Option<Table>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Words(Vec<String>);

#[derive(Deserialize, Serialize, JsonSchema)]
struct Table(HashMap<String, i64>);

#[derive(Deserialize, Serialize, JsonSchema)]
struct Renamed {
    #[serde(rename = "firstName")]
    first_name: String,
    r#type: String,
    #[serde(rename = "with-dash")]
    dashed: i64,
    #[serde(skip)]
    #[allow(dead_code)]
    hidden: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Anything {
    value: Value,
    list: Vec<Value>,
    map: HashMap<String, Value>,
    maybe: Option<Value>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            text: "world".into(),
            empty: String::new(),
            whole: -3,
            ratio: 0.5,
            flag: true,
            list: vec!["a".into(), "b".into()],
            unset: String::new(),
        }
    }
}

fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

fn germany() -> String {
    "DE".into()
}

fn week() -> i64 {
    7
}

/// Makes a tool that takes and returns a type, for each file.
macro_rules! files {
    ($($file:ident: $type:ty,)*) => {$(
        /// A type.
        #[tool]
        fn $file(arguments: $type) -> Result<$type, Error> {
            Ok(arguments)
        }
    )*};
}

/// Makes a tool that returns a type, for each file without arguments.
macro_rules! results {
    ($($file:ident: $type:ty = $value:expr,)*) => {$(
        /// A type.
        #[tool]
        fn $file() -> Result<$type, Error> {
            Ok($value)
        }
    )*};
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Media {
    #[schemars(extend("contentMediaType" = "image/png"))]
    picture: Bytes,
    /// What it is.
    #[schemars(extend("contentMediaType" = "image/png"))]
    said: Bytes,
    #[schemars(extend("contentEncoding" = "base64", "contentMediaType" = "audio/wav"))]
    recording: String,
    #[schemars(extend("contentMediaType" = "text/html"))]
    page: String,
    #[schemars(extend("contentMediaType" = "image/png"))]
    maybe: Option<Bytes>,
    data: Bytes,
}

#[derive(Serialize, JsonSchema)]
#[schemars(extend("contentMediaType" = "image/png"))]
struct Png(Bytes);

files! {
    anything: Anything,
    bounds: Bounds,
    choices: Choices,
    defaults: Defaults,
    described: Described,
    lists: Lists,
    maps: Maps,
    maybes: Maybes,
    media: Media,
    members: Members,
    nested: Order,
    optional: Optional,
    recursive: Tree,
    renamed: Renamed,
    scalars: Scalars,
}

results! {
    list: Vec<Point> = Vec::new(),
    map: HashMap<String, i64> = HashMap::new(),
    maybe: Vec<Option<Point>> = Vec::new(),
    number: f64 = 1.5,
    picture: Png = Png(Bytes(b"\x89PNG".to_vec())),
}

toolsrv::export! {
    tools: [
        anything, bounds, choices, defaults, described, lists, maps, maybes, media, members, nested, optional, recursive, renamed, scalars, list, map, maybe,
        number, picture,
    ],
}

#[test]
fn schemas_are_those_of_testdata() {
    let manifest: Value = serde_json::from_str(&MODULE.manifest().unwrap()).unwrap();
    let mut missing = files_for_rust();
    for tool in manifest["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(missing.remove(name), "testdata/derive/{name}.json is not there, or not for Rust");
        let file = golden(name);
        if !file["arguments"].is_null() {
            compare(name, &tool["parameters"], &file["arguments"]["schema"]);
        }
        compare(name, &tool["result"], &file["result"]["schema"]);
    }
    assert!(missing.is_empty(), "no types for the files {missing:?}");
}

/// Bytes are base64 on the way in and out.
#[test]
fn bytes_are_base64() {
    let arguments =
        r#"{"picture":"iVBORw0KGgo=","said":"","recording":"UklGRg==","page":"<p>","maybe":null,"data":"AAE="}"#;
    let result = toolsrv::testing::call(&MODULE, "media", arguments).unwrap();
    assert_eq!(result, serde_json::from_str::<Value>(arguments).unwrap());
    assert_eq!(toolsrv::testing::call(&MODULE, "picture", "{}").unwrap(), "iVBORw==");
    let error = toolsrv::testing::call(&MODULE, "media", &arguments.replace("AAE=", "AAE")).unwrap_err();
    assert!(error.message().contains("this is not base64 with its padding"), "{error:?}");
}

/// Compares two schemas with the order of their members, which agents read.
fn compare(name: &str, got: &Value, want: &Value) {
    assert_eq!(got.to_string(), want.to_string(), "{name}: got the left, want the right");
}

fn golden(name: &str) -> Value {
    let file = folder().join(name).with_extension("json");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap()
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/derive"))
}

/// Returns the names of the files that say that Rust has such a type.
fn files_for_rust() -> BTreeSet<String> {
    let names = std::fs::read_dir(folder()).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        (path.extension()? == "json").then(|| path.file_stem().unwrap().to_string_lossy().into_owned())
    });
    names.filter(|name| golden(name)["languages"].as_array().unwrap().contains(&"rust".into())).collect()
}
