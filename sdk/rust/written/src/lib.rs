//! A tool whose schemas are written by hand: its manifest stands in the file from the start.
#![forbid(unsafe_code)]

use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize)]
struct Numbers {
    numbers: Vec<f64>,
}

/// Add "numbers".
#[tool(
    parameters = "parameters.json",
    result = "result.json",
    example(arguments = r#"{"numbers": [1, 2.5]}"#, result = "3.5")
)]
fn sum(arguments: Numbers) -> Result<f64, Error> {
    Ok(arguments.numbers.iter().sum())
}

toolsrv::export! { namespace: "written", tools: [sum] }

#[cfg(test)]
mod tests {
    #[test]
    fn examples() {
        toolsrv::testing::examples(&super::MODULE);
    }
}
