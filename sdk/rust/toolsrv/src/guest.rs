//! What the exports of ABI 1 do. The macro `export!` writes the exports themselves.

use std::panic::PanicHookInfo;

use crate::{Call, Error, Level, Module, host};

/// What `toolsrv_call` and `toolsrv_describe` return.
const OK: i32 = 0;
const FAILED: i32 = 1; // fail told why
const BROKEN: i32 = 2; // the tool is at fault; the log tells how

/// How much the heap is grown before the snapshot. A call that needs more grows the memory, and then its instance can't be
/// reset and is made anew: a call with 200 KB of arguments took 0.93 ms without this and 0.52 ms with it. Pages that
/// nothing writes cost nothing.
const HEAP: usize = 1 << 20;

/// Runs tool number `tool` of `module`.
pub fn call(module: &Module, tool: i32) -> i32 {
    let Some(found) = usize::try_from(tool).ok().and_then(|tool| module.tools().get(tool)) else {
        host::log(Level::Error, &format!("there is no tool number {tool} in the module"));
        return BROKEN;
    };
    finish(found.run(&Call::new(), &host::input()))
}

/// Writes the manifest of `module`.
pub fn describe(module: &Module) -> i32 {
    finish(module.manifest().map(String::into_bytes))
}

/// Prepares what calls need, before the snapshot.
pub fn warm(module: &Module) {
    std::panic::set_hook(Box::new(log_panic));
    let mut heap = Vec::<u8>::new();
    let _ = heap.try_reserve_exact(HEAP); // where the limit is lower, calls may do with less
    drop(std::hint::black_box(heap));
    module.warm();
}

/// Tells the host how a call ended.
fn finish(outcome: Result<Vec<u8>, Error>) -> i32 {
    match outcome {
        Ok(output) => {
            host::output(&output);
            OK
        }
        Err(error) if error.is_broken() => {
            host::log(Level::Error, error.message());
            BROKEN
        }
        Err(error) => {
            host::fail(error.to_json().as_bytes());
            FAILED
        }
    }
}

/// Tells the operator why the call is about to trap. Without it a panic on wasm32-unknown-unknown says nothing.
fn log_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("something that is not text");
    match info.location() {
        Some(place) => host::log(Level::Error, &format!("panic at {place}: {message}")),
        None => host::log(Level::Error, &format!("panic: {message}")),
    }
}
