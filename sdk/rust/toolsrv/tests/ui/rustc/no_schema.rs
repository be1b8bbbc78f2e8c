use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

#[derive(Deserialize)]
struct Bare {
    a: i64,
}

/// Double a number.
#[tool]
fn double(arguments: Bare) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

struct Opaque;

/// Return what has no JSON.
#[tool]
fn opaque(_: In) -> Result<Opaque, Error> {
    Ok(Opaque)
}

fn main() {}
