//! Calls of other tools of the same server, as far as the operator lets the tool. The tool declares their paths
//! (`needs(tools = ["units/convert"])`) and the operator grants them. Such a call is like any other by the same client: arguments
//! are validated, and what the client may not call, its tools may not call for it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Call, Failure, granted};

/// Calls the tool of a path, such as `units/convert`, with arguments, whose JSON is an object, and returns its result. An `R` of
/// `serde_json::Value` takes any result.
///
/// A [`Failure`] has one of the common codes, `depth` where calls call calls too deeply, or the code that a client would see:
/// `tool_error` where the tool itself failed, and its own code is then [`Failure::tool_code`].
pub fn call<R: DeserializeOwned>(call: &Call, path: &str, arguments: &impl Serialize) -> Result<R, Failure> {
    let invalid =
        |what: &str, error: serde_json::Error| Failure::new("invalid", format_args!("the {what} of {path}: {error}"));
    let arguments = serde_json::to_vec(arguments).map_err(|error| invalid("arguments", error))?;
    serde_json::from_slice(&granted::call(call, path, &arguments)?).map_err(|error| invalid("result", error))
}
