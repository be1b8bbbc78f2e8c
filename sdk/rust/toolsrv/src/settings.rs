//! The settings that the operator has made for a module. The module declares a type for them, from which their schema is
//! derived as that of arguments is, and the host checks them against it:
//!
//! ```
//! use toolsrv::settings::Loaded;
//! use toolsrv::{Call, Error, tool};
//!
//! #[derive(Clone, serde::Deserialize, schemars::JsonSchema)]
//! struct Settings {
//!     /// The currency of all prices.
//!     currency: String,
//! }
//!
//! static SETTINGS: Loaded<Settings> = Loaded::new();
//!
//! fn prepare() {
//!     SETTINGS.load();
//! }
//!
//! /// Return the currency.
//! #[tool]
//! fn currency(call: &Call) -> Result<String, Error> {
//!     Ok(SETTINGS.get(call)?.currency)
//! }
//!
//! toolsrv::export! { needs: { settings: Settings }, tools: [currency], warm: prepare }
//! # fn main() {}
//! ```

use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use crate::{Call, Failure, granted};

/// Returns the settings, with defaults for what the operator has not set. They are those that held when the
/// call's sandbox was prepared.
pub fn read<T: DeserializeOwned>(call: &Call) -> Result<T, Failure> {
    from(Some(call))
}

fn from<T: DeserializeOwned>(call: Option<&Call>) -> Result<T, Failure> {
    serde_json::from_slice(&granted::settings(call)?)
        .map_err(|error| Failure::new("invalid", format_args!("the settings don't fit: {error}")))
}

/// Settings that are read in the function that `export!` gets as `warm`, and are in the snapshot that every call begins with, so
/// that calls don't read them again.
#[derive(Debug)]
pub struct Loaded<T>(OnceLock<T>);

impl<T: DeserializeOwned + Clone> Loaded<T> {
    /// Returns one that has not been loaded, for a static.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Reads the settings. Where that can't be done, as when the module is built, [`get`](Self::get) tries again. Natively, where
    /// a test gives them to each call, it does nothing.
    pub fn load(&self) {
        if let Ok(settings) = from(None) {
            let _ = self.0.set(settings); // those that were read first are as good
        }
    }

    /// Returns the settings. Where they have not been loaded it reads them now, and fails as [`read`] does.
    pub fn get(&self, call: &Call) -> Result<T, Failure> {
        self.0.get().map_or_else(|| read(call), |settings| Ok(settings.clone()))
    }
}

impl<T: DeserializeOwned + Clone> Default for Loaded<T> {
    fn default() -> Self {
        Self::new()
    }
}
