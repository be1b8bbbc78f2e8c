use serde_json::{Value, json};

use crate::MODULE;
use crate::tests::{call, query};

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

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
        ("half a step", "$.a!", 4, "expected \".name\", \"..name\" or \"[\", found \"!\""),
        (
            "a point at the end",
            "$.a.",
            5,
            "expected a name or \"*\"; other names stand in brackets and quotes, as in \"$['a-b']\", but the query ends",
        ),
        ("a point before a bracket", "$.a.[0]", 5, "write \"$.list[0]\" for \"$.list.[0]\""),
        ("a digit", "$.a.1st", 5, "a name that starts with a digit stands in brackets"),
        ("not closed", "$[0", 4, "expected \",\" or \"]\", but the query ends"),
        ("a bare name", "$[name]", 3, "a name in brackets stands in quotes, as in \"$['name']\""),
        ("a script", "$[(@.length-1)]", 3, "count from the end with a negative index"),
        ("a bare filter", "$[@.a]", 3, "a filter starts with \"?\""),
        ("no quote at the end", "$['äa", 6, "the string has no ' at its end"),
        ("a wrong escape", "$['a\\x']", 5, "there is no such escape"),
        ("half a character", "$['\\ud800']", 4, "\\u stands before four hex digits"),
        ("a control character", "$['\n']", 4, "a control character has to be escaped"),
        ("zeros in front", "$[01]", 3, "\"01\" is no index"),
        ("a large index", "$[9007199254740992]", 3, "the index is too large"),
        ("one sign of equality", "$[?@.a=1]", 7, "to compare values write \"==\""),
        ("a bare word", "$[?@.a == x]", 11, "\"x\" stands for nothing here: put text in quotes"),
        ("a value alone", "$[?'a']", 7, "expected a comparison such as \"==\", found \"]\""),
        (
            "several values",
            "$[?@.* == 1]",
            4,
            "this query can find several values: take one with value(), or count() them",
        ),
        ("a test as a value", "$[?match(@.a, 'a') == true]", 4, "match and search are true or false by themselves"),
        ("a negated comparison", "$[?!@.a == 1]", 11, "write !(@.a == 1), or @.a != 1"),
        (
            "no such function",
            "$[?size(@)]",
            4,
            "there is no function \"size\"; there are length, count, value, match and search",
        ),
        ("one argument", "$[?match(@)]", 11, "match takes two arguments, found \")\""),
        ("no query", "$[?count(1) > 0]", 10, "expected a query such as \"@.name\", found \"1\""),
        ("a number", "$[?@ == 1.]", 9, "\"1.\" is no number"),
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
        ("steps", json!([1]), format!("${}", ".a".repeat(900)), "too_deep"),
        ("a long name", json!([1]), format!("$[{}]", "x".repeat(1900)), "syntax"),
        ("a long number", json!([1]), format!("$[?@ == {}x]", "9".repeat(1900)), "syntax"),
        ("descents", nested(100), format!("${}", "..*".repeat(20)), "too_large"),
        ("descents within filters", json!(vec![nested(90); 100]), "$..[?count($..*) > 1]".to_string(), "too_expensive"),
        ("a large pattern", json!([1]), "$[?match(@, '((a{1,99}){1,99}){1,99}')]".to_string(), "too_expensive"),
        (
            "a large pattern of the document",
            json!(["((a{1,99}){1,99}){1,99}"]),
            "$[?match(@, @)]".to_string(),
            "too_expensive",
        ),
        (
            "the same many times",
            json!({"a": vec![1_000_000; 1000]}),
            format!("$.a[{}0]", "*,".repeat(700)),
            "too_large",
        ),
        (
            "the same in vain",
            json!([[[[[[[1]]]]]]]),
            format!("${}[1]", format!("[{}0]", "0,".repeat(99)).repeat(6)),
            "too_expensive",
        ),
    ];
    for (name, document, path, code) in tests {
        let error = query(&document, &path).expect_err(name);
        assert_eq!(error["code"], code, "{name}: {error}");
        assert!(error.to_string().len() < 500, "{name}: {error}");
    }
}

/// Queries of random parts are read as another library reads them, and find what it finds.
#[test]
fn same_as_another_library() {
    let steps = [
        ".a",
        ".b",
        ".*",
        "..a",
        "..*",
        "[*]",
        "['a']",
        "[\"b\"]",
        "[0]",
        "[-1]",
        "[1:]",
        "[::2]",
        "[::-1]",
        "[:-1]",
        "[2:0:-1]",
        "[0,'a']",
        "..[0]",
        "..['b',*]",
        "[?@.a]",
        "[?!@.b]",
        "[?@.a == 1]",
        "[?@ > 1]",
        "[?@.* ]",
        "[?@.a && @.b || @ == 2]",
        "[?(@.a)]",
        "[?!(@.a == @.b)]",
        "[?@.a != $.a]",
        "[?length(@) >= 2]",
        "[?count(@.*) < 2]",
        "[?value(@..a) == 1]",
        "[?@ <= 'b']",
        "[?@['a'][0] == null]",
        "[?match(@, 'x.*')]",
        "[?search(@.b,'y')]",
        "[ 0 , 'b' ]",
        " .a",
        "[?@ == true]",
        "[?@==-0]",
        "[?@==1e0]",
        "[?1==@.a]",
        "[?@.a==@.nope]",
        "[?@.nope==@.none]",
        "['\\u0061']",
        ".é",
        "[?@.a==[1]]",
        "[1,]",
        "[01]",
        "[-0]",
        "[?@.a=1]",
        ".1",
        ". a",
        "[?count(1)]",
        "[?length(@.*)]",
        "[?match(@)]",
        "[?count(@.*)]",
        "[?@.a == @..b]",
        "[?true]",
        "[?@ == 1.]",
        "[?@ == .5]",
        "['a\"]",
        "[?@ && ]",
        "[?((@.a))]",
        "[? @.a ]",
        "[?@[?@.a]]",
        "[::0]",
        "[?$]",
        "[?@.a == 'x' ]",
        "[?!@.a == 1]",
        "[9007199254740992]",
        "[?search(@.a, @.b)]",
        "[?match(@.a, 'x') == true]",
        "..",
    ];
    let document = json!({
        "a": [1, 2, {"a": "xy", "b": "y"}, [0, null, 1.0], "x1", true],
        "b": {"a": 1, "b": {"a": [null], "é": 2}},
        "é": "é", "n": -1.5,
    });
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut found = 0;
    for _ in 0..30_000 {
        let text = (0..=random(3)).fold("$".to_string(), |text, _| text + steps[random(steps.len())]);
        let got = crate::jsonpath::find(&document, &text, false);
        let got = got.map(|json| json.get().to_string());
        match serde_json_path::JsonPath::parse(&text) {
            Ok(query) => {
                let want = json!(query.query(&document).all()).to_string();
                found += usize::from(want.len() > 2);
                assert_eq!(got.as_ref().map_err(|e| e.message()), Ok(&want), "{text}");
            }
            Err(error) => assert!(got.is_err(), "{text}: got {got:?}, want an error: {error}"),
        }
    }
    assert!(found > 3000, "only {found} queries found something");
}
