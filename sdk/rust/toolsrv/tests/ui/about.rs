use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Double a number.
#[tool(title = "Double\nit")]
fn lines(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(title = "Double", title = "Twice")]
fn titles(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(annotations(read_only = "yes"))]
fn words(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(annotations(readOnly = true))]
fn camel(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(annotations(read_only = true, destructive = true))]
fn contradiction(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(annotations(read_only = true, read_only = false))]
fn twice(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(icon(src = "http://example.com/double.png"))]
fn http(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(icon(theme = "dark"))]
fn nowhere(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(icon(src = "https://example.com/double.png", sizes = ["48"]))]
fn size(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// Double a number.
#[tool(icon(src = "https://example.com/double.png", mimeType = "image/png"))]
fn member(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

fn main() {}
