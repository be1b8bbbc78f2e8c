//! Calls of tools, natively: arguments in, results and errors out, as in the sandbox.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolsrv::testing::{Report, call};
use toolsrv::{Call, Error, tool};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Terms {
    a: i64,
    #[serde(default)]
    b: i64,
}

/// Add.
#[tool]
fn add(call: &Call, terms: Terms) -> Result<i64, Error> {
    call.debug("adding");
    Ok(terms.a.checked_add(terms.b).ok_or("the sum is beyond 64 bits")?)
}

/// Return nothing at all.
#[tool]
fn nothing() -> Result<(), Error> {
    Ok(())
}

/// Return a map that JSON can't express.
#[tool]
fn unwritable() -> Result<HashMap<Vec<u8>, u8>, Error> {
    Ok(HashMap::from([(vec![1], 1)]))
}

static PREPARED: AtomicU32 = AtomicU32::new(0);

fn prepare() {
    PREPARED.fetch_add(1, Ordering::Relaxed);
}

/// Return how often the module was prepared.
#[tool]
fn prepared() -> Result<u32, Error> {
    Ok(PREPARED.load(Ordering::Relaxed))
}

/// Report in steps.
#[tool]
fn work(call: &Call, terms: Terms) -> Result<i64, Error> {
    for done in [f64::NAN, -1.0, 0.0, 0.0, 2.0, 1.0, f64::INFINITY] {
        call.progress(done, 3.0, format_args!("step {done}"));
    }
    call.progress(3.0, None, "");
    if terms.a == 0 { Err(Error::new("no")) } else { Ok(terms.a) }
}

toolsrv::export! { tools: [add, unwritable, nothing, prepared, measured, work], warm: prepare }

mod wrong {
    use toolsrv::{Error, tool};

    /// Return one.
    #[tool(example(arguments = "{}", result = "1.0"), example(arguments = "{}", result = "2"))]
    fn one() -> Result<i64, Error> {
        Ok(1)
    }

    toolsrv::export! { tools: [one] }
}

#[test]
#[should_panic(expected = "tool \"one\", example 2: {}: got 1, want 2")]
fn examples_that_are_wrong() {
    toolsrv::testing::examples(&wrong::MODULE);
}

#[test]
fn arguments() {
    for (tool, arguments, want) in [
        ("add", r#"{"a": 1, "b": 2}"#, Ok(json!(3))),
        ("add", r#" { "a" : -1 } "#, Ok(json!(-1))),
        ("nothing", "", Ok(Value::Null)),
        ("nothing", "{}", Ok(Value::Null)),
        ("prepared", "{}", Ok(json!(1))),
        ("prepared", "{}", Ok(json!(1))),
        ("add", "", Err("missing field `a`")),
        ("add", r#"{"a": 1.0}"#, Err("invalid type: floating point `1.0`, expected i64")),
        ("add", r#"{"a": 9223372036854775808}"#, Err("invalid value: integer `9223372036854775808`")),
        ("add", r#"{"a": 1} {"a": 2}"#, Err("trailing characters")),
        ("add", r#"{"a": 1, "a": 2}"#, Err("duplicate field `a`")),
        ("add", r#"{"a": 9223372036854775807, "b": 1}"#, Err("the sum is beyond 64 bits")),
        ("add", &"[".repeat(100_000), Err("arguments: invalid type: sequence")),
        ("sub", "{}", Err("the module has no tool \"sub\"")),
    ] {
        match (call(&MODULE, tool, arguments), want) {
            (Ok(got), Ok(want)) => assert_eq!(got, want, "{tool} {arguments:.100}"),
            (Err(got), Err(want)) => {
                assert!(got.message().contains(want), "{tool} {arguments:.100}: got {}, want {want}", got.message());
            }
            (got, want) => panic!("{tool} {arguments:.100}: got {got:?}, want {want:?}"),
        }
    }
}

#[test]
fn progress() {
    let report = |done, total, message: &str| Report { done, total, message: message.into() };
    let want = vec![report(0.0, Some(3.0), "step 0"), report(2.0, Some(3.0), "step 2"), report(3.0, None, "")];
    assert_eq!(toolsrv::testing::progress(&MODULE, "work", r#"{"a": 5}"#), (want.clone(), Ok(json!(5))));
    assert_eq!(toolsrv::testing::progress(&MODULE, "work", r#"{"a": 0}"#), (want, Err(Error::new("no"))));
    assert_eq!(toolsrv::testing::progress(&MODULE, "nothing", "{}"), (vec![], Ok(Value::Null)));
}

#[test]
fn wrong_arguments_have_a_code() {
    let error = call(&MODULE, "add", r#"{"a": "x"}"#).unwrap_err().to_json();
    let want = r#"{"message":"arguments: invalid type: string \"x\", expected i64 at line 1 column 9","code":"invalid_arguments"}"#;
    assert_eq!(error, want);
}

#[test]
fn results_that_json_cannot_express() {
    let error = call(&MODULE, "unwritable", "{}").unwrap_err();
    assert_eq!(error.message(), "the result can't be written as JSON: key must be a string");
}

#[derive(Serialize, JsonSchema)]
struct Measured {
    name: String,
    none: Option<i64>,
    lists: Vec<HashMap<String, (u8, f64)>>,
    one: OneOrTwo,
}

#[derive(Serialize, JsonSchema)]
enum OneOrTwo {
    One(Option<f32>),
    Two { a: f32 },
}

/// Return numbers that JSON can't express, by the place that `a` is.
#[tool]
fn measured(terms: Terms) -> Result<Measured, Error> {
    let at = |place, number| if terms.a == place { number } else { 1.5 };
    Ok(Measured {
        name: "null".into(),
        none: None,
        lists: vec![HashMap::from([("a".into(), (1, at(1, f64::NAN)))]), HashMap::new()],
        one: match terms.a {
            2 => OneOrTwo::One(Some(f32::INFINITY)),
            3 => OneOrTwo::Two { a: f32::NEG_INFINITY },
            _ => OneOrTwo::One(None),
        },
    })
}

#[test]
fn numbers_that_are_not_finite() {
    let fine = call(&MODULE, "measured", r#"{"a": 0}"#);
    assert_eq!(fine, Ok(json!({"name": "null", "none": null, "lists": [{"a": [1, 1.5]}, {}], "one": {"One": null}})));
    for place in 1..=3 {
        let error = call(&MODULE, "measured", &format!(r#"{{"a": {place}}}"#)).unwrap_err();
        assert_eq!(error.message(), "the result can't be written as JSON: a number is not finite", "{place}");
    }
}

#[test]
fn errors() {
    let number: Result<i64, _> = "x".parse::<i64>();
    for (error, want) in [
        (Error::new("No."), r#"{"message":"No."}"#),
        (Error::new("No: \"ä\"\n"), r#"{"message":"No: \"ä\"\n"}"#),
        (Error::new(""), r#"{"message":"the tool failed"}"#),
        (Error::new("").code("gone"), r#"{"message":"gone","code":"gone"}"#),
        (Error::new("").code(""), r#"{"message":"the tool failed","code":""}"#),
        (
            Error::new("No.").code("taken").status(409).data(json!({"left": [1, null]})),
            r#"{"message":"No.","code":"taken","status":409,"data":{"left":[1,null]}}"#,
        ),
        (Error::new("No.").data(Terms { a: 1, b: 2 }), r#"{"message":"No.","data":{"a":1,"b":2}}"#),
        (Error::from("text"), r#"{"message":"text"}"#),
        (Error::from(String::from("text")), r#"{"message":"text"}"#),
        (number.unwrap_err().into(), r#"{"message":"invalid digit found in string"}"#),
    ] {
        assert_eq!(error.to_json(), want);
    }
}

#[test]
fn long_messages_are_cut_between_characters() {
    for length in [8190, 8191, 8192, 8193] {
        let message = "a".repeat(length) + &"ä".repeat(10_000);
        let text: Value = serde_json::from_str(&Error::new(&message).to_json()).unwrap();
        let got = text.get("message").unwrap().as_str().unwrap().strip_suffix("...").unwrap();
        assert!(message.starts_with(got), "{length}: another message");
        assert!((8191..=8192).contains(&got.len()), "{length}: got {} bytes", got.len());
    }
}

#[test]
fn data_that_json_cannot_express() {
    let error = Error::new("No.").data(HashMap::from([(vec![1u8], 1)]));
    let want = "the data of an error can't be written as JSON: key must be a string; the error: No.";
    assert_eq!(error.message(), want);
}

#[test]
fn randomness() {
    let drawn: [u8; 20] = toolsrv::random::bytes();
    assert_ne!(drawn, toolsrv::random::bytes());
    assert_ne!(toolsrv::random::u64(), toolsrv::random::u64());
    let mut seen = [false; 6];
    for _ in 0..1000 {
        let number = usize::try_from(toolsrv::random::below(6)).unwrap();
        *seen.get_mut(number).unwrap() = true;
    }
    assert_eq!(seen, [true; 6]);
    assert_eq!(toolsrv::random::below(1), 0);
    assert_eq!(toolsrv::random::below(0), 0);
}

#[test]
fn time() {
    assert!(toolsrv::now().elapsed().unwrap() < Duration::from_secs(60));
    assert_eq!(Call::new().time_left(), None);
}
