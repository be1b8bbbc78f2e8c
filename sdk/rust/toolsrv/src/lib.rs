//! Tools for the server `toolsrv`: typed functions that run in a WebAssembly sandbox and answer over HTTP.
//!
//! A tool is a function from a struct of arguments to a `Result`. Its JSON Schema follows from the two types, its
//! description is the doc comment, and [`export!`] makes the tools of a crate callable:
//!
//! ```
//! use toolsrv::{Error, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Terms {
//!     /// The dividend.
//!     a: f64,
//!     /// The divisor, not 0.
//!     b: f64,
//! }
//!
//! /// Divide two numbers.
//! #[tool(example(arguments = r#"{"a": 1, "b": 2}"#, result = "0.5"))]
//! fn divide(terms: Terms) -> Result<f64, Error> {
//!     if terms.b == 0.0 {
//!         return Err(Error::new("The divisor is 0: pass another number.").code("division_by_zero"));
//!     }
//!     Ok(terms.a / terms.b)
//! }
//!
//! toolsrv::export! { namespace: "math", tools: [divide] }
//! # fn main() { toolsrv::testing::examples(&MODULE); }
//! ```
//!
//! The crate is a `cdylib`, built for `wasm32-unknown-unknown` or `wasm32-wasip1`, and tested natively with
//! `cargo test` and the module [`testing`]. It needs no `unsafe`.
//!
//! What a tool reaches outside of the sandbox, it declares and the operator grants: requests ([`http`]), keys and values ([`kv`]),
//! secrets ([`secrets`]), settings ([`settings`]), other tools ([`tools`]).
//!
//! Every call starts from the same state. What a call writes to statics is gone when it ends, including what it
//! computed lazily: prepare that in a function that `export!` gets as `warm`. Take randomness and the time in a
//! call, from [`random`] and [`now`]: what was read earlier is the same in every call.

mod bytes;
mod call;
mod clock;
mod error;
mod failure;
mod finite;
mod granted;
mod guest;
mod host;
pub mod http;
pub mod kv;
mod module;
mod prose;
pub mod random;
mod schema;
pub mod secrets;
pub mod settings;
pub mod testing;
mod tool;
pub mod tools;
mod writer;

pub use bytes::Bytes;
pub use call::{Call, Level};
pub use clock::now;
pub use error::{Error, Result};
pub use failure::Failure;
pub use module::Module;
pub use tool::Tool;
pub use toolsrv_macros::{export, tool};

/// What the macros use. It is not for authors, and changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::guest::{call, describe, warm};
    pub use crate::module::{Settings, check_name, manifest, manifest_size};
    pub use crate::tool::{Definition, NoArguments, Outcome, Schema, run};
}

/// The example of the README, which `cargo test` runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
