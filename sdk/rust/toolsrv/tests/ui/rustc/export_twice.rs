use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Return a number.
#[tool]
fn one(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Return a number.
#[tool(name = "one")]
fn other(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

toolsrv::export! { tools: [one, other] }

fn main() {}
