use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

fn plain(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

/// Return a number.
#[tool]
fn good(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a)
}

toolsrv::export! { tools: [good, plain, missing] }

fn main() {}
