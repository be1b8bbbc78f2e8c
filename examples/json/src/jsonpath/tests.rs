use serde_json::json;

use crate::MODULE;
use crate::tests::{call, query};

#[test]
fn queries() {
    let store = json!({"store": {"book": [
        {"title": "Sayings", "price": 8.95, "isbn": null},
        {"title": "Sword", "price": 12.990},
        {"title": "Moby Dick", "price": 8.99, "tags": ["whale", "sea"]},
    ], "a.b": {"'": 1}}});
    let tests = [
        ("the document", "$", json!([store])),
        ("a name", "$.store['a.b'][\"'\"]", json!([1])),
        ("all", "$.store.book[*].title", json!(["Sayings", "Sword", "Moby Dick"])),
        ("from the end", "$.store.book[-1].title", json!(["Moby Dick"])),
        ("a slice", "$.store.book[::-2].price", json!([8.99, 8.95])),
        ("several", "$.store.book[0,2].price", json!([8.95, 8.99])),
        ("at any depth", "$..tags[0]", json!(["whale"])),
        ("twice at any depth", "$..book..title", json!(["Sayings", "Sword", "Moby Dick"])),
        ("compare", "$.store.book[?@.price < 9 && @.title != 'Sayings'].title", json!(["Moby Dick"])),
        ("exists", "$.store.book[?@.isbn].title", json!(["Sayings"])),
        ("does not exist", "$.store.book[?!@.isbn].title", json!(["Sword", "Moby Dick"])),
        ("null", "$.store.book[?@.isbn == null].title", json!(["Sayings"])),
        ("numbers by value", "$.store.book[?@.price == 1299e-2].title", json!(["Sword"])),
        ("length", "$.store.book[?length(@.tags) == 2].title", json!(["Moby Dick"])),
        ("count", "$.store.book[?count(@.*) > 2].title", json!(["Sayings", "Moby Dick"])),
        ("match", "$.store.book[?match(@.title, 'S.*')].title", json!(["Sayings", "Sword"])),
        ("match the whole", "$.store.book[?match(@.title, 'S')]", json!([])),
        ("search", "$.store.book[?search(@.title, '[yk]$|ayi')].title", json!(["Sayings", "Moby Dick"])),
        ("a wrong pattern", "$.store.book[?search(@.title, '[')]", json!([])),
        ("match of a number", "$.store.book[?match(@.price, '8')]", json!([])),
        ("nothing", "$.shop", json!([])),
        ("brackets in text", "$.store.book[?@.title == '((((((((((((((((((((((((\\'[[[\"']", json!([])),
    ];
    for (name, path, want) in tests {
        assert_eq!(query(&store, path), Ok(want), "{name}: {path}");
    }
    let pointers = call("query", &json!({"document": {"a~b": {"c/'\\": [1]}}, "path": "$..[0]", "output": "pointers"}));
    assert_eq!(pointers, Ok(json!(["/a~0b/c~1'\\/0"])));
}

#[test]
fn numbers_stay_as_written() {
    let text = r#"{"document": [12345678901234567890123, 0.10, 1e400, -0.0], "path": "$"}"#;
    let got = toolsrv::testing::call(&MODULE, "query", text).map(|v| v.to_string());
    assert_eq!(got.as_deref(), Ok("[[12345678901234567890123,0.10,1e+400,-0.0]]"));
}

#[test]
fn wrong_queries() {
    let tests = [
        ("no root", "store.book", 1, "a query starts with \"$\", which stands for the document"),
        ("a space behind", "$.a ", 4, "white space can't end a query"),
        ("half a step", "$.a!", 4, "expected \".name\", \"..name\" or \"[\""),
        (
            "a point at the end",
            "$.a.",
            5,
            "expected a name or \"*\"; other names need brackets and quotes, as in \"$['a-b']\"",
        ),
        ("a point before a bracket", "$.a.[0]", 5, "write \"$.list[0]\" for \"$.list.[0]\""),
        ("a digit", "$.a.1st", 5, "a name that starts with a digit needs brackets"),
        ("not closed", "$[0", 4, "expected \",\" or \"]\", but the query ends"),
        ("a bare name", "$[name]", 2, "a name in brackets needs quotes, as in \"$['name']\""),
        ("a script", "$[(@.length-1)]", 2, "count from the end with a negative index"),
        ("a bare filter", "$[@.a]", 2, "a filter starts with \"?\""),
        ("no quote at the end", "$['äa", 6, "the string has no quote at its end"),
        ("a wrong escape", "$['a\\x']", 5, "there is no such escape"),
        ("half a character", "$['\\ud800']", 4, "there is no such escape, or one is missing"),
        ("a control character", "$['\n']", 4, "there is no such escape, or one is missing"),
        ("zeros in front", "$[01]", 4, "expected \",\" or \"]\""),
        ("a large index", "$[9007199254740992]", 2, "expected a name in quotes, an index, a slice"),
        ("one sign of equality", "$[?@.a=1]", 7, "to compare values write \"==\""),
        ("a bare word", "$[?@.a == x]", 8, "a comparison has one value on either side: a number"),
        ("a value alone", "$[?'a']", 4, "expected a comparison, a query, match() or search()"),
        ("several values", "$[?@.* == 1]", 8, "a query that finds one value at most"),
        ("a test as a value", "$[?match(@.a, 'a') == true]", 20, "a comparison has one value on either side: a number"),
        ("a negated comparison", "$[?!@.a == 1]", 9, "!(…) negates it"),
        (
            "no such function",
            "$[?size(@)]",
            4,
            "function name 'size' is not defined; there are length, count, value, match and search",
        ),
        ("one argument", "$[?match(@)]", 4, "match() and search() take two arguments"),
        ("no query", "$[?count(1) > 0]", 4, "count() and value() take a query such as \"@.name\""),
        ("a number", "$[?@ == 1.]", 10, "expected \",\" or \"]\""),
    ];
    for (name, path, position, message) in tests {
        let error = query(&json!([1]), path).expect_err(name);
        assert_eq!(
            (&error["code"], &error["data"]["position"]),
            (&json!("syntax"), &json!(position)),
            "{name}: {error}"
        );
        let got = error["message"].as_str().unwrap_or_default();
        assert!(got.contains(message), "{name}: got {got:?}, want it to contain {message:?}");
    }
}

#[test]
fn hostile_queries() {
    let tests = [
        ("parentheses", json!([1]), format!("$[?{}@.a{}]", "(".repeat(900), ")".repeat(900)), "too_deep"),
        ("filters", json!([1]), format!("${}", "[?@".repeat(600)), "too_deep"),
        ("functions", json!([1]), format!("$[?{}", "length(".repeat(250)), "too_deep"),
        ("a large pattern", json!([1]), "$[?match('', '((a{1,99}){1,99}){1,99}')]".to_string(), "too_expensive"),
        (
            "a large pattern of the document",
            json!(["((a{1,99}){1,99}){1,99}"]),
            "$[?match(@, @)]".to_string(),
            "too_expensive",
        ),
        ("a long name", json!([1]), format!("$[{}]", "x".repeat(1900)), "syntax"),
        ("a long number", json!([1]), format!("$[?@ == {}x]", "9".repeat(1900)), "syntax"),
        (
            "the same many times",
            json!({"a": vec![1_000_000; 1000]}),
            format!("$.a[{}0]", "*,".repeat(700)),
            "too_large",
        ),
    ];
    for (name, document, path, code) in tests {
        let error = query(&document, &path).expect_err(name);
        assert_eq!(error["code"], code, "{name}: {error}");
        assert!(error.to_string().len() < 500, "{name}: {error}");
    }
}
