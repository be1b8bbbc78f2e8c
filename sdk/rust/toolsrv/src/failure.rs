use std::fmt;

use serde_json::Value;

use crate::Error;

/// The status of a call that fails by a [`Failure`]: what the tool depends on is at fault, not who calls it.
const STATUS: u16 = 502;

/// A `Failure` says why the host did not do what a tool asked for: a request to another server, a key's value, a secret,
/// another tool. A tool may look at its code and go on, or return it with `?`: clients then get its code and message, with
/// status 502. For that it has no `Display`, as [`Error`] has none: see [`Failure::message`].
#[derive(Clone, PartialEq)]
pub struct Failure(Box<Parts>);

#[derive(Clone, PartialEq)]
struct Parts {
    code: String,
    message: String,
    tool_code: Option<String>,
    data: Option<Value>,
}

impl Failure {
    /// Returns a failure, for tests in which something fails.
    pub fn new(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self(Box::new(Parts { code: code.into(), message: message.to_string(), tool_code: None, data: None }))
    }

    /// Returns the failure of an answer that breaks the contract of host and guest.
    pub(crate) fn broken(how: impl fmt::Display) -> Self {
        Self::new("unavailable", format_args!("the host's answer breaks the contract: {how}"))
    }

    /// Reads a failure as the host writes it.
    #[cfg(any(test, target_family = "wasm"))]
    pub(crate) fn read(text: &[u8]) -> Self {
        let read = || {
            let value: Value = serde_json::from_slice(text).ok()?;
            let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(Self(Box::new(Parts {
                code: word("code").filter(|code| !code.is_empty())?,
                message: word("message").unwrap_or_default(),
                tool_code: word("tool_code"),
                data: value.get("data").cloned(),
            })))
        };
        read().unwrap_or_else(|| {
            Self::broken(format_args!("a failure that can't be read: {}", String::from_utf8_lossy(text)))
        })
    }

    /// Adds what another tool that was called says of its error.
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub(crate) fn of_tool(mut self, code: Option<String>, data: Option<Value>) -> Self {
        (self.0.tool_code, self.0.data) = (code, data);
        self
    }

    /// Returns a stable word: `not_granted`, `invalid`, `too_large`, `limit`, `unavailable`, `timeout`, and those that the
    /// module of the function names.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Returns what is wrong, and what to do.
    pub fn message(&self) -> &str {
        if self.0.message.is_empty() { &self.0.code } else { &self.0.message }
    }

    /// Returns the code of the error of another tool that was called, where it has one.
    pub fn tool_code(&self) -> Option<&str> {
        self.0.tool_code.as_deref()
    }

    /// Returns the data of the error of another tool that was called, where it has any.
    pub fn data(&self) -> Option<&Value> {
        self.0.data.as_ref()
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(failure.message()).code(failure.code()).status(STATUS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Failure;

    #[test]
    fn as_the_host_writes_it() {
        let failure = Failure::read(br#"{"code":"tool_error","message":"No.","tool_code":"no","data":[1]}"#);
        assert_eq!(failure, Failure::new("tool_error", "No.").of_tool(Some("no".into()), Some(json!([1]))));
        assert_eq!(Failure::read(br#"{"code":"limit","message":""}"#).message(), "limit");
        for text in ["", "{}", "[]", r#"{"code":""}"#, "\u{fffd}"] {
            let failure = Failure::read(text.as_bytes());
            assert_eq!(failure.code(), "unavailable", "{text}");
            assert!(failure.message().ends_with(text), "{failure:?}");
        }
    }
}
