use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

/// Double a number.
#[tool]
fn double(arguments: In) -> i64 {
    arguments.a * 2
}

/// Forget a number.
#[tool]
fn forget(arguments: In) {
    let _ = arguments.a;
}

fn main() {}
