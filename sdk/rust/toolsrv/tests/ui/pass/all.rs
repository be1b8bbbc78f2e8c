#![forbid(unsafe_code)]
#![deny(missing_docs, warnings)]
//! All that a tool may be.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::{Call, Error, tool};

/// Arguments.
#[derive(Deserialize, JsonSchema)]
pub struct In {
    /// A number.
    pub a: i64,
}

/// A result.
#[derive(Serialize, JsonSchema)]
pub struct Out {
    /// A number.
    pub a: i64,
}

/// Takes all, with a call.
#[tool(
    name = "all-of-it",
    title = "All \"of\" it",
    annotations(read_only = true, destructive = false, idempotent = true, open_world = false),
    icon(src = "https://example.com/a.png", mime_type = "image/png", sizes = ["48x48", "any"], theme = "dark"),
    icon(src = "data:image/png;base64,iVBORw0KGgo="),
    example(arguments = r#"{"a": 1}"#, result = r#"{"a": 1}"#),
    example(arguments = r#"{"a": 2}"#)
)]
pub fn all(call: &Call, arguments: In) -> Result<Out, Error> {
    call.info("all of it");
    call.debug(format_args!("{}", arguments.a));
    Ok(Out { a: arguments.a })
}

/// Takes a pattern.
#[tool]
fn pattern(In { a }: In) -> toolsrv::Result<i64> {
    Ok(a)
}

/// Takes nothing.
#[tool]
fn nothing() -> Result<(), Error> {
    Ok(())
}

/// Takes a call only.
#[tool]
fn only(_: &Call) -> Result<String, &'static str> {
    Err("no")
}

/// Has the name of what the macros pass.
#[tool]
fn call(call: &Call, arguments: In) -> Result<i64, Error> {
    input(arguments).inspect(|a| call.info(a))
}

/// Has the name of what the macros pass.
#[tool]
fn input(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Has an error of its own.
#[derive(Debug)]
pub struct Own;

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("my own")
    }
}

impl std::error::Error for Own {}

/// Fails with its own error.
#[tool]
fn own(_: In) -> Result<i64, Own> {
    Err(Own)
}

mod inner {
    /// Stands in a module, under a keyword's name.
    #[toolsrv::tool]
    pub(crate) fn r#match(_: super::In) -> Result<i64, Box<dyn std::error::Error>> {
        Err(super::Own)?
    }
}

toolsrv::export! {
    tools: [all, pattern, nothing, only, own, inner::r#match, call, input],
    warm: prepare,
    version: "2.0 \"beta\"",
    namespace: "a/b",
}

fn prepare() {}

fn main() {
    let error = |tool| toolsrv::testing::call(&MODULE, tool, r#"{"a": 1}"#).unwrap_err().to_json();
    assert_eq!(error("own"), r#"{"message":"my own"}"#);
    assert_eq!(error("match"), r#"{"message":"my own"}"#);
    assert_eq!(error("only"), r#"{"message":"no"}"#);
    toolsrv::testing::examples(&MODULE);
    let manifest = MODULE.manifest().unwrap();
    assert!(manifest.starts_with(r#"{"abi":1,"namespace":"a/b","version":"2.0 \"beta\"","sdk":"rust/"#), "{manifest}");
    let about = concat!(
        r#"{"name":"all-of-it","description":"Takes all, with a call.","title":"All \"of\" it","#,
        r#""annotations":{"readOnly":true,"destructive":false,"idempotent":true,"openWorld":false},"#,
        r#""icons":[{"src":"https://example.com/a.png","mimeType":"image/png","theme":"dark","sizes":["48x48","any"]},"#,
        r#"{"src":"data:image/png;base64,iVBORw0KGgo="}],"parameters":{"#,
    );
    assert!(manifest.contains(about), "{manifest}");
    assert!(manifest.contains(r#"{"name":"pattern","description":"Takes a pattern.","parameters":{"#), "{manifest}");
}
