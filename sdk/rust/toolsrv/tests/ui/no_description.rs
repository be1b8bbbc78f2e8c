use schemars::JsonSchema;
use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct In {
    a: i64,
}

#[tool]
fn double(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

/// 
#[tool]
fn blank(arguments: In) -> Result<i64, Error> {
    Ok(arguments.a * 2)
}

toolsrv::export! { tools: [double, blank] }

fn main() {}
