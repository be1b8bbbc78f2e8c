//! JSON documents: `json/query` (JSONPath), `json/patch` (JSON Patch), `json/merge` (JSON Merge Patch) and `json/diff`.

mod compare;
mod equal;
mod jsonpath;
mod operation;
mod pointer;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The JSON to look into, any value.
    document: Value,
    /// A JSONPath (RFC 9535) such as "$.store.books[?@.price < 10].title", "$..id" or "$.items[-1]". Filters can
    /// compare with == != < <= > >=, combine with && || !, and call length, count, value, match(text, pattern) and
    /// search(text, pattern).
    #[schemars(length(min = 1, max = 2000))]
    path: String,
    /// What to return: the "values" that are found, or "pointers" to them, JSON Pointers as a patch takes them.
    #[serde(default)]
    output: Output,
}

#[derive(Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Output {
    #[default]
    Values,
    Pointers,
}

#[derive(Serialize, JsonSchema)]
struct Found(#[schemars(with = "Vec<Value>")] Box<RawValue>);

/// Find values in a JSON document with a JSONPath. The result is a list, in the order of the document, empty where
/// nothing is found.
#[tool(
    title = "Query JSON",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"document": {"books": [{"title": "Emma", "price": 8}, {"title": "Ulysses", "price": 12.50}]}, "path": "$.books[?@.price < 10].title"}"#,
        result = r#"["Emma"]"#
    ),
    example(
        arguments = r#"{"document": {"a": {"id": 1}, "b": [{"id": 2}]}, "path": "$..id", "output": "pointers"}"#,
        result = r#"["/a/id", "/b/0/id"]"#
    ),
    example(
        arguments = r#"{"document": ["apple", "banana", "cherry"], "path": "$[?match(@, '.*an.*')]"}"#,
        result = r#"["banana"]"#
    )
)]
fn query(query: Query) -> Result<Found, Error> {
    jsonpath::find(&query.document, &query.path, query.output == Output::Pointers).map(Found)
}

#[derive(Deserialize, JsonSchema)]
struct Patch {
    /// The JSON to change, any value.
    document: Value,
    /// The operations (RFC 6902), applied in this order, all of them or none.
    #[schemars(schema_with = "operations")]
    patch: Vec<Map<String, Value>>,
}

/// The standard says that unknown members are ignored, so a struct, whose schema is closed, would not do.
fn operations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 10_000,
        "items": {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"]},
                "path": {"type": "string", "description": "Where, a JSON Pointer (RFC 6901) such as \"/items/0/price\"; \"\" is the whole document, \"/items/-\" the place behind the last item. In a name, \"/\" is written ~1 and \"~\" is written ~0."},
                "from": {"type": "string", "description": "From where, a JSON Pointer; for move and copy."},
                "value": {"description": "Any JSON; for add, replace and test."},
            },
            "required": ["op", "path"],
            "additionalProperties": true,
        },
    })
}

/// Change a JSON document with a JSON Patch: add, remove, replace, move, copy and test. The result is the changed
/// document. A test that fails is an error with status 409.
#[tool(
    title = "Patch JSON",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"document": {"a": [1, 3]}, "patch": [{"op": "add", "path": "/a/1", "value": 2}, {"op": "test", "path": "/a/2", "value": 3.0}, {"op": "move", "from": "/a", "path": "/b~1c"}]}"#,
        result = r#"{"b/c": [1, 2, 3]}"#
    ),
    example(
        arguments = r#"{"document": {"old": 1}, "patch": [{"op": "remove", "path": "/old"}, {"op": "add", "path": "/new", "value": null}]}"#,
        result = r#"{"new": null}"#
    )
)]
fn patch(patch: Patch) -> Result<Value, Error> {
    operation::apply(patch.document, &patch.patch)
}

#[derive(Deserialize, JsonSchema)]
struct Merge {
    /// The JSON to change, any value.
    document: Value,
    /// The members to set; null removes one. Anything but an object replaces the document.
    changes: Value,
}

/// Change a JSON document with a JSON Merge Patch (RFC 7396): members that are given replace those of the document,
/// at any depth; null removes one, lists are replaced whole.
#[tool(
    title = "Merge JSON",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"document": {"title": "Draft", "author": {"name": "Ada", "mail": "a@b.example"}}, "changes": {"title": "Final", "author": {"mail": null}}}"#,
        result = r#"{"title": "Final", "author": {"name": "Ada"}}"#
    )
)]
fn merge(merge: Merge) -> Result<Value, Error> {
    let mut document = merge.document;
    operation::merge(&mut document, merge.changes);
    Ok(document)
}

#[derive(Deserialize, JsonSchema)]
struct Diff {
    /// The JSON to start from, any value.
    from: Value,
    /// The JSON to arrive at, any value.
    to: Value,
}

/// Compare two JSON documents. The result is the JSON Patch that turns the first into the second; it is empty where
/// they are equal.
#[tool(
    title = "Compare JSON",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r#"{"from": {"a": [1, 2, 3], "b": true}, "to": {"a": [1, 3], "c": "new"}}"#,
        result = r#"[{"op": "remove", "path": "/a/1"}, {"op": "remove", "path": "/b"}, {"op": "add", "path": "/c", "value": "new"}]"#
    ),
    example(arguments = r#"{"from": {"a": 1, "b": 2}, "to": {"b": 2.0, "a": 10e-1}}"#, result = "[]")
)]
fn diff(diff: Diff) -> Result<Vec<Value>, Error> {
    compare::diff(&diff.from, &diff.to)
}

toolsrv::export! { namespace: "json", tools: [query, patch, merge, diff] }

#[cfg(test)]
mod tests;
