use std::time::SystemTime;

use crate::host;

/// Returns the time. `SystemTime::now` panics on `wasm32-unknown-unknown`, which has no clock; this asks the host on
/// every target. Call it in a tool's function: a time that was read earlier is the same in every call.
pub fn now() -> SystemTime {
    host::now()
}
