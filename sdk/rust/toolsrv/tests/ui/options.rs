use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Double a number.
#[tool(name = "double it")]
fn spaced(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool]
fn größe(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(titel = "Double")]
fn titel(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(name = "a", name = "b")]
fn twice(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(parameters = "no/such/file.json")]
fn file(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(result = "file.json")]
fn result(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

fn main() {}
