use std::fmt::Display;
use std::time::Duration;

use crate::host;

/// A `Call` is one call of a tool: its log, its progress, and how much time is left. A tool that wants it takes `&Call`
/// before its arguments. Natively, in tests, the log goes to standard error.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Call {
    /// What [`testing::progress`](crate::testing::progress) returns.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) reports: std::sync::Mutex<Vec<crate::testing::Report>>,
    /// What stands in for the host where a tool needs a grant.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) host: Option<crate::testing::Host>,
}

/// The level of a log line. The operator chooses which levels the host shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for whoever is debugging the tool.
    Debug = 0,
    /// What the tool does.
    Info = 1,
    /// What looks wrong but does not stop the tool.
    Warn = 2,
    /// What broke.
    Error = 3,
}

impl Call {
    /// Returns a call, for tests that call a tool's function directly.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how long the call has left, for tools that can answer in part. The host ends the call at that time, whatever
    /// the tool does. It is `None` where there is no call: in `warm`, and natively.
    pub fn time_left(&self) -> Option<Duration> {
        u64::try_from(host::milliseconds_left()).ok().map(Duration::from_millis)
    }

    /// Reports how much of its work the call has done, to clients that ask for it, such as
    /// `call.progress(3.0, 10.0, "reading")`. `total` is how much there is to do in the same unit, such as rows or per cent,
    /// and `None` where that is not known. The message is for people and may be empty.
    ///
    /// A tool may report as often as it likes: the host passes on a few reports in a second, and only those whose `done` is
    /// greater than before.
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>, message: impl Display) {
        host::progress(self, done, total.into(), &message.to_string());
    }

    /// Writes a line to the host's log, such as `call.log(Level::Info, format_args!("{n} rows"))`. The host bounds the
    /// number of lines of a call and their length. Clients see none of it.
    pub fn log(&self, level: Level, message: impl Display) {
        host::log(level, &message.to_string());
    }

    /// Logs a line for whoever is debugging the tool.
    pub fn debug(&self, message: impl Display) {
        self.log(Level::Debug, message);
    }

    /// Logs a line that says what the tool does.
    pub fn info(&self, message: impl Display) {
        self.log(Level::Info, message);
    }

    /// Logs a line about something that looks wrong but does not stop the tool.
    pub fn warn(&self, message: impl Display) {
        self.log(Level::Warn, message);
    }

    /// Logs a line about something that broke. The call goes on; return an error to end it.
    pub fn error(&self, message: impl Display) {
        self.log(Level::Error, message);
    }
}
