use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

use crate::writer::Writer;

/// How much of a message is sent, in bytes: written as JSON it still fits into what the host takes.
const MAX_MESSAGE: usize = 8 << 10;

/// A `Result` with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An `Error` fails a call. The client gets its message, and its code, status and data where they are set.
///
/// Whatever implements `Display` becomes one, so that `?` works on the errors of other crates, on `&str` and `String`;
/// the status is then 400. For the same reason an `Error` itself has no `Display`: see [`Error::message`].
///
/// ```
/// # use toolsrv::Error;
/// fn order(wanted: u32, left: u32) -> Result<u32, Error> {
///     left.checked_sub(wanted).ok_or_else(|| {
///         Error::new(format!("There are {left} left, and you want {wanted}."))
///             .code("not_in_stock")
///             .status(409)
///             .data(left)
///     })
/// }
/// # assert!(order(3, 2).is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<Parts>);

#[derive(Debug, Clone, Default, PartialEq)]
struct Parts {
    message: String,
    code: Option<String>,
    status: Option<u16>,
    data: Option<Value>,
    broken: bool,
}

impl Error {
    /// Returns an error with a sentence for the client: what is wrong, where, and what to do. Agents read it. Of a
    /// longer one clients see 8 KiB.
    pub fn new(message: impl Display) -> Self {
        Self(Box::new(Parts { message: message.to_string(), ..Parts::default() }))
    }

    /// Returns an error that is the tool's fault, not the caller's. A client sees only that the tool broke (status
    /// 500); the message goes to the log.
    pub(crate) fn broken(message: impl Display) -> Self {
        let mut error = Self::new(message);
        error.0.broken = true;
        error
    }

    /// Sets a stable word of the tool's own for programs to act on, such as `division_by_zero`, at most 128 bytes.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// Sets the HTTP status, 400 to 599; 400 where it is not set. Any other is the tool's fault and answered with 500.
    /// Clients take 422 for a list of invalid arguments, so choose another.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Adds any further data that JSON can express. The host takes 64 KiB of JSON for the whole error. A value that JSON can't
    /// express is the tool's fault and answered with 500.
    #[must_use]
    pub fn data(mut self, data: impl Serialize) -> Self {
        match serde_json::to_value(data) {
            Ok(data) => self.0.data = Some(data),
            Err(error) => {
                let message =
                    format!("the data of an error can't be written as JSON: {error}; the error: {}", self.0.message);
                return Self::broken(message);
            }
        }
        self
    }

    /// Returns the message, or the code where there is no message.
    pub fn message(&self) -> &str {
        match (self.0.message.as_str(), self.0.code.as_deref()) {
            ("", None | Some("")) => "the tool failed",
            ("", Some(code)) => code,
            (message, _) => message,
        }
    }

    /// Returns the error as the host reads it: an object with `message` and, where they are set, `code`, `status` and
    /// `data`.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new("{");
        out.text("message", &bounded(self.message()));
        if let Some(code) = &self.0.code {
            out.text("code", code);
        }
        if let Some(status) = self.0.status {
            out.value("status", &status.into());
        }
        if let Some(data) = &self.0.data {
            out.value("data", data);
        }
        out.finish("}")
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.0.broken
    }
}

impl<E: Display> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// Returns as much of a message as is sent.
fn bounded(message: &str) -> std::borrow::Cow<'_, str> {
    if message.len() <= MAX_MESSAGE {
        return message.into();
    }
    let mut end = MAX_MESSAGE;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", message.get(..end).unwrap_or_default()).into()
}
