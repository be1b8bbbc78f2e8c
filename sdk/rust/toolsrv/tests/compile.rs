//! Errors of the compiler point at the author's line, and say what to do.
//!
//! `TRYBUILD=overwrite cargo test -p toolsrv --test compile` writes the messages anew.

use std::process::Command;

/// The compiler whose own words stand in `tests/ui/rustc`. Others word the same errors in other ways.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn errors_point_at_the_line() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/*.rs");
    let version = Command::new("rustc").arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    if version.starts_with(RUSTC.as_bytes()) {
        cases.compile_fail("tests/ui/rustc/*.rs");
    } else {
        println!("the compiler is not {RUSTC}*: its own messages were not compared");
    }
}
