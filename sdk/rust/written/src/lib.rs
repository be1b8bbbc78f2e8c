//! A tool whose schemas are written by hand: its manifest stands in the file from the start.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;
use toolsrv::{Error, tool};

#[derive(Deserialize)]
struct Numbers {
    numbers: Vec<f64>,
}

/// Add "numbers".
#[tool(
    title = "Sum",
    annotations(read_only = true),
    parameters = "parameters.json",
    result = "result.json",
    example(arguments = r#"{"numbers": [1, 2.5]}"#, result = "3.5")
)]
fn sum(arguments: Numbers) -> Result<f64, Error> {
    Ok(arguments.numbers.iter().sum())
}

/// What `prepare` leaves for every call.
static PREPARED: AtomicU32 = AtomicU32::new(0);

fn prepare() {
    PREPARED.fetch_add(1, Ordering::Relaxed);
}

/// Return how often the module was prepared before this call.
#[tool(parameters = "none.json")]
fn prepared() -> Result<u32, Error> {
    Ok(PREPARED.fetch_add(1, Ordering::Relaxed))
}

toolsrv::export! { namespace: "written", tools: [sum, prepared], warm: prepare }

#[cfg(test)]
mod tests {
    #[test]
    fn examples() {
        toolsrv::testing::examples(&super::MODULE);
    }
}
