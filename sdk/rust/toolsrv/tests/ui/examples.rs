use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Double a number.
#[tool(example(arguments = r#"{"a": 2,}"#, result = "4"))]
fn comma(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(example(arguments = r#"{"a": 2}"#, result = "four"))]
fn word(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(example(arguments = "2"))]
fn bare(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(example(result = "4"))]
fn half(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(example(input = "{}"))]
fn input(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

fn main() {}
