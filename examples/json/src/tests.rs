use serde_json::{Value, json};

use crate::MODULE;

pub fn call(tool: &str, arguments: &Value) -> Result<Value, Value> {
    toolsrv::testing::call(&MODULE, tool, &arguments.to_string()).map_err(|e| e.to_json().parse().unwrap_or_default())
}

pub fn query(document: &Value, path: &str) -> Result<Value, Value> {
    call("query", &json!({ "document": document, "path": path }))
}

fn patch(document: &Value, patch: &Value) -> Result<Value, Value> {
    call("patch", &json!({ "document": document, "patch": patch }))
}

#[test]
fn examples() {
    toolsrv::testing::examples(&MODULE);
}

#[test]
fn patches() {
    let tests = [
        ("no operation", json!({"a": 1}), json!([]), json!({"a": 1})),
        (
            "add a member",
            json!({"a": 1}),
            json!([{"op": "add", "path": "/b", "value": null}]),
            json!({"a": 1, "b": null}),
        ),
        ("add what is there", json!({"a": 1}), json!([{"op": "add", "path": "/a", "value": 2}]), json!({"a": 2})),
        ("add in front", json!([1]), json!([{"op": "add", "path": "/0", "value": 0}]), json!([0, 1])),
        (
            "add at the end",
            json!([1]),
            json!([{"op": "add", "path": "/-", "value": 2}, {"op": "add", "path": "/2", "value": 3}]),
            json!([1, 2, 3]),
        ),
        ("the whole document", json!(1), json!([{"op": "add", "path": "", "value": {"a": 1}}]), json!({"a": 1})),
        ("the empty name", json!({"": 1}), json!([{"op": "replace", "path": "/", "value": 2}]), json!({"": 2})),
        (
            "escapes",
            json!({"~1": 1, "/": 2}),
            json!([{"op": "remove", "path": "/~01"}, {"op": "copy", "from": "/~1", "path": "/~0~1"}]),
            json!({"/": 2, "~/": 2}),
        ),
        ("a name of digits", json!({"0": 1}), json!([{"op": "remove", "path": "/0"}]), json!({})),
        ("move an item", json!([1, 2, 3]), json!([{"op": "move", "from": "/0", "path": "/2"}]), json!([2, 3, 1])),
        ("move to itself", json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/a"}]), json!({"a": 1})),
        (
            "move upwards",
            json!({"a": {"b": 1}}),
            json!([{"op": "move", "from": "/a/b", "path": "/a"}]),
            json!({"a": 1}),
        ),
        ("unknown members", json!({}), json!([{"op": "add", "path": "/a", "value": 1, "xyz": 123}]), json!({"a": 1})),
        (
            "test numbers by value",
            json!([1, 1.0, {"x": 1e2}]),
            json!([{"op": "test", "path": "", "value": [1.0, 1, {"x": 100}]}]),
            json!([1, 1.0, {"x": 1e2}]),
        ),
        (
            "test what is longer than a double",
            json!({"id": 9007199254740993_i64}),
            json!([{"op": "test", "path": "/id", "value": 9007199254740993_i64}]),
            json!({"id": 9007199254740993_i64}),
        ),
    ];
    for (name, document, operations, want) in tests {
        assert_eq!(patch(&document, &operations), Ok(want), "{name}");
    }
    let order = toolsrv::testing::call(
        &MODULE,
        "patch",
        r#"{"document": {"z": 1, "m": 2, "a": 3}, "patch": [{"op": "remove", "path": "/m"}]}"#,
    );
    assert_eq!(order.map(|v| v.to_string()).as_deref(), Ok(r#"{"z":1,"a":3}"#), "members keep their order");
}

#[test]
fn wrong_patches() {
    let document = json!({"items": [{"id": 1}], "name": "x"});
    let tests = [
        (
            "no operation",
            json!({"op": "delete", "path": "/name"}),
            "invalid_operation",
            "Operation 0 (delete): \"op\" has to be add, remove",
        ),
        (
            "no path",
            json!({"op": "remove"}),
            "invalid_operation",
            "\"path\" is missing, a JSON Pointer such as \"/items/0\"",
        ),
        ("a path that is none", json!({"op": "remove", "path": 7}), "invalid_operation", "\"path\" has to be a string"),
        (
            "a path of names",
            json!({"op": "remove", "path": "name"}),
            "invalid_operation",
            "\"path\": \"name\" does not start with \"/\"",
        ),
        ("a wrong escape", json!({"op": "remove", "path": "/a~2"}), "invalid_operation", "\"~\" is written \"~0\""),
        (
            "an escape at the end",
            json!({"op": "remove", "path": "/a~"}),
            "invalid_operation",
            "\"~\" is written \"~0\"",
        ),
        (
            "an escape before what is no ASCII",
            json!({"op": "remove", "path": "/~ä"}),
            "invalid_operation",
            "\"~\" is written \"~0\"",
        ),
        (
            "no value",
            json!({"op": "add", "path": "/a"}),
            "invalid_operation",
            "\"value\" is missing; pass null where null is meant",
        ),
        ("no from", json!({"op": "move", "path": "/a"}), "invalid_operation", "\"from\" is missing"),
        (
            "no member",
            json!({"op": "remove", "path": "/nam"}),
            "conflict",
            "Operation 0 (remove): the document has no member \"nam\".",
        ),
        (
            "no member on the way",
            json!({"op": "replace", "path": "/items/0/x/y", "value": 1}),
            "conflict",
            "\"/items/0\" has no member \"x\"",
        ),
        (
            "no item",
            json!({"op": "replace", "path": "/items/1", "value": 1}),
            "conflict",
            "\"/items\" has 1 item, so there is no item \"1\"; the only one is at 0",
        ),
        (
            "remove behind the last",
            json!({"op": "remove", "path": "/items/-"}),
            "conflict",
            "so there is no item \"-\"",
        ),
        (
            "add beyond the last",
            json!({"op": "add", "path": "/items/2", "value": 1}),
            "conflict",
            "there is no item \"2\"",
        ),
        ("zeros in front", json!({"op": "add", "path": "/items/00", "value": 1}), "conflict", "\"00\" is not an index"),
        ("a sign", json!({"op": "add", "path": "/items/+1", "value": 1}), "conflict", "\"+1\" is not an index"),
        (
            "a large index",
            json!({"op": "add", "path": "/items/99999999999999999999", "value": 1}),
            "conflict",
            "there is no item",
        ),
        (
            "within a string",
            json!({"op": "add", "path": "/name/a", "value": 1}),
            "conflict",
            "\"/name\" is a string, which has no members",
        ),
        (
            "into itself",
            json!({"op": "move", "from": "/items", "path": "/items/0/x"}),
            "conflict",
            "\"/items\" can't be moved into itself",
        ),
        (
            "no source",
            json!({"op": "copy", "from": "/x", "path": "/y"}),
            "conflict",
            "the document has no member \"x\"",
        ),
        (
            "a failed test",
            json!({"op": "test", "path": "/name", "value": "y"}),
            "test_failed",
            "\"/name\" does not equal the value",
        ),
    ];
    for (name, operation, code, message) in tests {
        let error = patch(&document, &json!([operation])).expect_err(name);
        assert_eq!(error["code"], code, "{name}: {error}");
        let got = error["message"].as_str().unwrap_or_default();
        assert!(got.contains(message), "{name}: got {got:?}, want it to contain {message:?}");
    }
    let error = patch(&document, &json!([{"op": "remove", "path": "/name"}, {"op": "remove", "path": "/name"}]))
        .expect_err("second");
    assert_eq!(error["data"], json!({"operation": 1}), "{error}");
}

#[test]
fn hostile_patches() {
    let doubling: Vec<Value> = (0..64).map(|i| json!({"op": "copy", "from": "", "path": format!("/x{i}")})).collect();
    let deepening: Vec<Value> = (0..200).map(|_| json!({"op": "copy", "from": "", "path": "/a"})).collect();
    let stacking: Vec<Value> =
        (0..200).map(|i| json!({"op": "add", "path": "/0".repeat(i + 1), "value": [0]})).collect();
    let tests = [
        ("copies of copies", json!({}), json!(doubling), "too_large"),
        ("deeper copies", json!({"a": 1}), json!(deepening), "too_deep"),
        (
            "wide copies",
            json!({"a": vec![0; 1000]}),
            json!((0..1000).map(|i| json!({"op": "copy", "from": "/a", "path": format!("/b{i}")})).collect::<Vec<_>>()),
            "too_large",
        ),
        ("deeper and deeper", json!([0]), json!(stacking), "too_deep"),
        ("a long path", json!({}), json!([{"op": "remove", "path": "/".repeat(100_000)}]), "conflict"),
        ("a long name", json!({}), json!([{"op": "x".repeat(100_000), "path": "/a"}]), "invalid_operation"),
    ];
    for (name, document, operations, code) in tests {
        let error = patch(&document, &operations).expect_err(name);
        assert_eq!(error["code"], code, "{name}: {error:.300}");
        assert!(error.to_string().len() < 500, "{name}: the error has {} bytes", error.to_string().len());
    }
}

/// The table of RFC 7396, appendix A.
#[test]
fn merges() {
    let tests = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!({"a": "foo"}), json!("bar"), json!("bar")),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ];
    for (document, changes, want) in tests {
        let got = call("merge", &json!({"document": document, "changes": changes}));
        assert_eq!(got, Ok(want), "{document} with {changes}");
    }
}

/// What diff tells is what patch does.
#[test]
fn differences() {
    let tests = [
        ("nothing", json!({"a": [1, {}]}), json!({"a": [1.0, {}]}), 0),
        ("another kind", json!([1]), json!({"a": 1}), 1),
        ("null is a value", json!({"a": null}), json!({}), 1),
        ("an item out", json!([1, 2, 3, 4]), json!([1, 3, 4]), 1),
        ("an item in", json!([1, 3, 4]), json!([1, 2, 3, 4]), 1),
        ("items in and out", json!([1, 2, 3, 4, 5]), json!([0, 9, 5]), 4),
        ("a member of an item", json!([{"a": 1, "b": 2}, 3]), json!([{"a": 1, "b": 4}, 3]), 1),
        ("names to escape", json!({"a/b~c": 1, "": 2}), json!({"a/b~c": 2}), 2),
    ];
    for (name, from, to, count) in tests {
        let operations = call("diff", &json!({"from": from, "to": to})).expect(name);
        assert_eq!(operations.as_array().map(Vec::len), Some(count), "{name}: {operations}");
        let got = patch(&from, &operations);
        assert!(got.as_ref().is_ok_and(|got| crate::equal::equal(got, &to)), "{name}: got {got:?}, want {to}");
    }
}

/// Whatever is asked, it ends in a result or a sentence.
#[test]
fn anything() {
    let parts = [
        "$", "@", ".", "..", "*", "[", "]", "?", "(", ")", "'", "\"", "\\", "a", "0", "-1", ":", ",", "==", "<", "&&",
        "!", "é", " ", "length(", "match(", "/", "~0", "~",
    ];
    let document = json!({"a": [0, {"a": "aé"}, -1], "é": null});
    let mut state = 1u64;
    for i in 0..20_000 {
        let mut text = String::from(if i % 2 == 0 { "$[?@" } else { "/a" });
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        let outcome = if i % 2 == 0 {
            query(&document, &text)
        } else {
            patch(&document, &json!([{"op": "copy", "from": "/a/1", "path": text}]))
        };
        if let Err(error) = outcome {
            assert!(error["code"].is_string(), "{text}: {error}");
        }
    }
}
