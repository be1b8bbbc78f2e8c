use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Wait.
#[tool]
async fn wait(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Take too much.
#[tool]
fn two(a: In, b: In) -> Result<i64, Error> {
    Ok(a.a + b.a)
}

/// Borrow.
#[tool]
fn borrow(_: &toolsrv::Call, arguments: &In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Borrow a text.
#[tool]
fn text(text: &str) -> Result<usize, Error> {
    Ok(text.len())
}

/// Change the call.
#[tool]
fn change(_: &mut toolsrv::Call, arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Be generic.
#[tool]
fn generic<T>(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Be unsafe.
#[tool]
unsafe fn hazard(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Have the name of a type.
#[tool]
fn str(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Be no function.
#[tool]
struct Thing;

fn main() {}
