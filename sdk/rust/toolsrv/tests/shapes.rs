//! Schemas of types that only Rust has, or that serde writes in several ways.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU8;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolsrv::{Error, tool};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Point {
    x: f64,
}

/// What to draw.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Tagged {
    /// A round one.
    Circle {
        radius: f64,
    },
    Dot(Point),
    Nothing,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct InTagged {
    shape: Tagged,
}

#[derive(Deserialize, Serialize, JsonSchema)]
enum External {
    None,
    Number(i64),
    Named { name: String },
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct InExternal {
    value: External,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Text(String),
    Point(Point),
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct InUntagged {
    value: Untagged,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Number(i64),
    Point(Point),
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct InAdjacent {
    value: Adjacent,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Flattened {
    query: String,
    #[serde(flatten)]
    point: Point,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Page {
    limit: u8,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct MaybeFlattened {
    #[serde(flatten)]
    page: Option<Page>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct FlattenedEnum {
    query: String,
    #[serde(flatten)]
    shape: Tagged,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct FlattenedMap {
    query: String,
    #[serde(flatten)]
    rest: BTreeMap<String, i64>,
}

/// A day, as a type of its own.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Day(#[schemars(regex(pattern = "^[a-z]+$"))] String);

/// How to sort.
#[derive(Deserialize, Serialize, JsonSchema, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Sort {
    /// Least
    /// first.
    #[default]
    Up,
    Down,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Plain {
    day: Day,
    /// The
    /// order.
    sort: Sort,
    maybe: Option<Sort>,
    #[serde(default)]
    default: Sort,
    list: Vec<Sort>,
    #[serde(default)]
    none: Option<i64>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Keys {
    by_id: BTreeMap<i64, String>,
    by_bit: BTreeMap<u8, Point>,
    by_sort: BTreeMap<Sort, i64>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Chain {
    next: Option<Box<Chain>>,
    /// The one before.
    before: Option<Box<Chain>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Unit;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Odd {
    pair: (i64, String),
    size: usize,
    offset: isize,
    large: u128,
    one: NonZeroU8,
    letter: char,
    set: HashSet<i64>,
    unit: Unit,
    nothing: (),
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<i64>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Strict {
    point: Option<Point>,
    inner: Inner,
}

#[derive(Deserialize, Serialize, JsonSchema, Default)]
struct Inner {
    sort: Sort,
}

/// Takes members
/// that it does
/// not have.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct Open {
    a: i64,
}

/// Makes a tool that takes and returns a type.
macro_rules! tools {
    ($($name:ident: $type:ty,)*) => {
        $(
            /// A type.
            #[tool]
            fn $name(arguments: $type) -> Result<$type, Error> {
                Ok(arguments)
            }
        )*

        toolsrv::export! { tools: [$($name),*] }
    };
}

tools! {
    tagged: Tagged,
    in_tagged: InTagged,
    external: InExternal,
    untagged: InUntagged,
    adjacent: InAdjacent,
    flattened: Flattened,
    maybe_flattened: MaybeFlattened,
    flattened_enum: FlattenedEnum,
    flattened_map: FlattenedMap,
    plain: Plain,
    keys: Keys,
    chain: Chain,
    odd: Odd,
    strict: Strict,
    open: Open,
}

/// The schemas of the arguments. Space between their parts is left out before they are compared.
const WANT: &[(&str, &str)] = &[
    (
        "tagged",
        r##"{"type":"object","description":"What to draw.","oneOf":[{"type":"object","description":"A round one.",
            "properties":{"kind":{"type":"string","const":"circle"},"radius":{"type":"number"}},"required":["kind",
            "radius"],"additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"dot"},
            "x":{"type":"number"}},"required":["kind","x"],"additionalProperties":false},{"type":"object",
            "properties":{"kind":{"type":"string","const":"nothing"}},"required":["kind"],"additionalProperties":false}]}"##,
    ),
    (
        "in_tagged",
        r##"{"type":"object","properties":{"shape":{"$ref":"#/$defs/Tagged"}},"required":["shape"],
            "additionalProperties":false,"$defs":{"Tagged":{"description":"What to draw.","oneOf":[{"type":"object",
            "description":"A round one.","properties":{"kind":{"type":"string","const":"circle"},
            "radius":{"type":"number"}},"required":["kind","radius"],"additionalProperties":false},{"type":"object",
            "properties":{"kind":{"type":"string","const":"dot"},"x":{"type":"number"}},"required":["kind","x"],
            "additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"nothing"}},
            "required":["kind"],"additionalProperties":false}]}}}"##,
    ),
    (
        "external",
        r##"{"type":"object","properties":{"value":{"$ref":"#/$defs/External"}},"required":["value"],
            "additionalProperties":false,"$defs":{"External":{"oneOf":[{"type":"string","enum":["None"]},{"type":"object",
            "properties":{"Number":{"type":"integer"}},"required":["Number"],"additionalProperties":false},
            {"type":"object","properties":{"Named":{"type":"object","properties":{"name":{"type":"string"}},
            "required":["name"],"additionalProperties":false}},"required":["Named"],"additionalProperties":false}]}}}"##,
    ),
    (
        "untagged",
        r##"{"type":"object","properties":{"value":{"$ref":"#/$defs/Untagged"}},"required":["value"],
            "additionalProperties":false,"$defs":{"Untagged":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/Point"}]},
            "Point":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}}}"##,
    ),
    (
        "adjacent",
        r##"{"type":"object","properties":{"value":{"$ref":"#/$defs/Adjacent"}},"required":["value"],
            "additionalProperties":false,"$defs":{"Adjacent":{"oneOf":[{"type":"object",
            "properties":{"t":{"type":"string","const":"Number"},"c":{"type":"integer"}},"required":["t","c"],
            "additionalProperties":false},{"type":"object","properties":{"t":{"type":"string","const":"Point"},
            "c":{"$ref":"#/$defs/Point"}},"required":["t","c"],"additionalProperties":false}]},"Point":{"type":"object",
            "properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}}}"##,
    ),
    (
        "flattened",
        r##"{"type":"object","properties":{"query":{"type":"string"},"x":{"type":"number"}},"required":["query","x"],
            "additionalProperties":false}"##,
    ),
    (
        "maybe_flattened",
        r##"{"type":"object","properties":{"limit":{"type":"integer","minimum":0,"maximum":255}},
            "additionalProperties":false}"##,
    ),
    (
        "flattened_enum",
        r##"{"type":"object","description":"What to draw.","oneOf":[{"type":"object","description":"A round one.",
            "properties":{"kind":{"type":"string","const":"circle"},"radius":{"type":"number"}},"required":["kind",
            "radius"]},{"type":"object","properties":{"kind":{"type":"string","const":"dot"},"x":{"type":"number"}},
            "required":["kind","x"]},{"type":"object","properties":{"kind":{"type":"string","const":"nothing"}},
            "required":["kind"]}],"properties":{"query":{"type":"string"}},"required":["query"]}"##,
    ),
    (
        "flattened_map",
        r##"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],
            "additionalProperties":{"type":"integer"}}"##,
    ),
    (
        "plain",
        r##"{"type":"object","properties":{"day":{"type":"string","description":"A day, as a type of its own.",
            "pattern":"^[a-z]+$"},"sort":{"type":"string","description":"The order.\n- up: Least first.","enum":["down",
            "up"]},"maybe":{"type":["string","null"],"description":"How to sort.\n- up: Least first.","enum":["down","up",
            null]},"default":{"type":"string","description":"How to sort.\n- up: Least first.","enum":["down","up"],
            "default":"up"},"list":{"type":"array","items":{"type":"string",
            "description":"How to sort.\n- up: Least first.","enum":["down","up"]}},"none":{"type":["integer","null"]}},
            "required":["day","sort","list"],"additionalProperties":false}"##,
    ),
    (
        "keys",
        r##"{"type":"object","properties":{"by_id":{"type":"object","propertyNames":{"pattern":"^-?[0-9]+$"},
            "additionalProperties":{"type":"string"}},"by_bit":{"type":"object","propertyNames":{"pattern":"^[0-9]+$"},
            "additionalProperties":{"$ref":"#/$defs/Point"}},"by_sort":{"type":"object",
            "additionalProperties":{"type":"integer"}}},"required":["by_id","by_bit","by_sort"],
            "additionalProperties":false,"$defs":{"Point":{"type":"object","properties":{"x":{"type":"number"}},
            "required":["x"],"additionalProperties":false}}}"##,
    ),
    (
        "chain",
        r##"{"type":"object","properties":{"next":{"$ref":"#/$defs/Chain"},"before":{"description":"The one before.",
            "allOf":[{"$ref":"#/$defs/Chain"}]}},"additionalProperties":false,"$defs":{"Chain":{"type":"object",
            "properties":{"next":{"$ref":"#/$defs/Chain"},"before":{"description":"The one before.",
            "allOf":[{"$ref":"#/$defs/Chain"}]}},"additionalProperties":false}}}"##,
    ),
    (
        "odd",
        r##"{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
            "minItems":2,"maxItems":2},"size":{"type":"integer","minimum":0,"maximum":4294967295},
            "offset":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"large":{"type":"integer","minimum":0},
            "one":{"type":"integer","minimum":1,"maximum":255},"letter":{"type":"string","minLength":1,"maxLength":1},
            "set":{"type":"array","items":{"type":"integer"},"uniqueItems":true},"unit":{"type":"null"},
            "nothing":{"type":"null"},"omitted":{"type":"array","items":{"type":"integer"}}},"required":["pair","size",
            "offset","large","one","letter","set","unit","nothing"],"additionalProperties":false}"##,
    ),
    (
        "strict",
        r##"{"type":"object","properties":{"point":{"$ref":"#/$defs/Point"},"inner":{"allOf":[{"$ref":"#/$defs/Inner"}],
            "default":{"sort":"up"}}},"additionalProperties":false,"$defs":{"Point":{"type":"object",
            "properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false},"Inner":{"type":"object",
            "properties":{"sort":{"type":"string","description":"How to sort.\n- up: Least first.","enum":["down","up"]}},
            "required":["sort"],"additionalProperties":false}}}"##,
    ),
    (
        "open",
        r##"{"type":"object","description":"Takes members that it does not have.",
            "properties":{"a":{"type":"integer"}},"required":["a"]}"##,
    ),
];

#[test]
fn shapes() {
    let manifest: Value = serde_json::from_str(&MODULE.manifest().unwrap()).unwrap();
    let tools = manifest["tools"].as_array().unwrap();
    assert_eq!(tools.len(), WANT.len());
    for (tool, (name, want)) in tools.iter().zip(WANT) {
        assert_eq!(tool["name"], *name);
        let want: String = want.split('\n').map(str::trim_start).collect();
        assert_eq!(tool["parameters"].to_string(), want, "{name}: got the left, want the right");
    }
}

/// A result is what the tool sends: all members are there, others are no fault, and null stands for what is missing.
#[test]
fn results() {
    let manifest: Value = serde_json::from_str(&MODULE.manifest().unwrap()).unwrap();
    let result = |name: &str| {
        let tools = manifest["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["result"].clone()
    };
    assert_eq!(result("chain")["required"], serde_json::json!(["next", "before"]));
    assert_eq!(
        result("chain")["properties"]["before"].to_string(),
        r##"{"description":"The one before.","anyOf":[{"$ref":"#/$defs/Chain"},{"type":"null"}]}"##
    );
    assert!(!result("odd")["required"].as_array().unwrap().contains(&"omitted".into()));
    for tool in manifest["tools"].as_array().unwrap() {
        assert!(!tool["result"].to_string().contains(r#""additionalProperties":false"#), "{}", tool["result"]);
    }
}

/// A type that has no value: its schema is of no use, but deriving it ends.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Endless(Box<Endless>);

mod endless {
    use toolsrv::{Error, tool};

    /// A type.
    #[tool]
    fn endless(arguments: super::Endless) -> Result<i64, Error> {
        drop(arguments);
        Ok(1)
    }

    toolsrv::export! { tools: [endless] }
}

#[test]
fn arguments_that_are_no_object() {
    let error = endless::MODULE.manifest().unwrap_err();
    assert_eq!(error.message(), "the arguments of the tool endless are not a JSON object: take a struct");
}
