use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Be a method.
#[tool]
fn method(&self, arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

fn main() {}
