#![deny(dead_code)]

use toolsrv::{Error, tool};

/// Return nothing.
#[tool]
fn exported() -> Result<(), Error> {
    Ok(())
}

/// Return nothing.
#[tool]
fn forgotten() -> Result<(), Error> {
    Ok(())
}

toolsrv::export! { tools: [exported] }

fn main() {
    let _ = &MODULE;
}
