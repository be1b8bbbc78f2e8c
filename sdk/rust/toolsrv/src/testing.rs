//! Native tests of tools, without a server and without WebAssembly.
//!
//! Arguments are JSON. They are decoded, and the result is encoded, as in the sandbox.
//! What only the schema says (a `range`, a `length`, a `regex`, members that the type does not have) is checked by the
//! server, and by `toolsrv test` and `toolsrv call` on the built file.
//!
//! ```
//! # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Terms { a: i64, b: i64 }
//! # /// Add.
//! # #[toolsrv::tool(example(arguments = r#"{"a": 1, "b": 2}"#, result = "3"))]
//! # fn add(terms: Terms) -> Result<i64, toolsrv::Error> { Ok(terms.a + terms.b) }
//! # toolsrv::export! { tools: [add] }
//! # fn main() {
//! let sum = toolsrv::testing::call(&MODULE, "add", r#"{"a": 1, "b": 2}"#);
//! assert_eq!(sum, Ok(3.into()));
//! toolsrv::testing::examples(&MODULE);
//! # }
//! ```
//!
//! What a tool reaches outside of the sandbox is a [`World`] of the test's.

use serde_json::Value;

#[cfg(not(target_family = "wasm"))]
mod world;

#[cfg(not(target_family = "wasm"))]
pub(crate) use world::Host;
#[cfg(not(target_family = "wasm"))]
pub use world::{Answered, World};

use crate::host;
use crate::{Call, Error, Module};

/// Calls a tool of `module` with arguments, a JSON object, and returns its result. The function that `export!` got as
/// `warm` runs first, once.
pub fn call(module: &Module, tool: &str, arguments: &str) -> Result<Value, Error> {
    run(&Call::new(), module, tool, arguments)
}

/// What a call reports of its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// How much of its work the call has done.
    pub done: f64,
    /// How much there is to do, if the tool knows.
    pub total: Option<f64>,
    /// What the tool says about it.
    pub message: String,
}

/// Calls a tool like [`call`], and also returns what it reports of its progress. Reports that a host would drop because they
/// make no sense are left out: those whose `done` is less than 0, not finite, or not greater than before. A host also passes
/// on no more than a few in a second, and cuts long messages; here all of them are returned as they are.
pub fn progress(module: &Module, tool: &str, arguments: &str) -> (Vec<Report>, Result<Value, Error>) {
    let call = Call::new();
    let result = run(&call, module, tool, arguments);
    (host::reports(call), result)
}

fn run(call: &Call, module: &Module, tool: &str, arguments: &str) -> Result<Value, Error> {
    let Some(found) = module.tools().iter().find(|t| t.name() == tool) else {
        return Err(Error::new(format!("the module has no tool {tool:?}")));
    };
    module.warm();
    Ok(serde_json::from_slice(&found.run(call, arguments.as_bytes())?)?)
}

/// Calls each example of the manifest, and panics where one fails or has another result than it says.
///
/// # Panics
///
/// That is how a test fails.
#[track_caller]
pub fn examples(module: &Module) {
    examples_of(module, |tool, arguments| call(module, tool, arguments));
}

/// Calls each example of the manifest by `call`, and panics where one fails or has another result than it says.
#[track_caller]
#[allow(clippy::panic)]
fn examples_of(module: &Module, call: impl Fn(&str, &str) -> Result<Value, Error>) {
    if let Err(error) = module.manifest() {
        panic!("{}", error.message());
    }
    for tool in module.tools() {
        for (i, (arguments, result)) in tool.examples().iter().enumerate() {
            let place = format!("tool {:?}, example {}: {arguments}", tool.name(), i + 1);
            let want: Option<Value> = result.and_then(|result| serde_json::from_str(result).ok());
            match (call(tool.name(), arguments), want) {
                (Err(error), _) => panic!("{place}: {}", error.message()),
                (Ok(got), Some(want)) if !same(&got, &want) => panic!("{place}: got {got}, want {want}"),
                _ => {}
            }
        }
    }
}

/// Reports whether two values are equal, numbers by their value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
