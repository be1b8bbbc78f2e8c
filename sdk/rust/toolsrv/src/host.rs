//! The host's functions that every tool may call: but for `granted`, the only place of this crate with `unsafe`. The linker drops
//! each import where nothing calls it, so that a module asks for no more than it needs.

#[cfg(target_family = "wasm")]
pub(crate) use wasm::*;

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::*;

#[cfg(target_family = "wasm")]
#[allow(unsafe_code)]
mod wasm {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use crate::testing::Report;
    use crate::{Call, Level};

    #[link(wasm_import_module = "toolsrv_v1")]
    unsafe extern "C" {
        safe fn input_size() -> usize;
        fn input_read(ptr: *mut u8);
        fn output_write(ptr: *const u8, len: usize);
        #[link_name = "fail"]
        fn fail_write(ptr: *const u8, len: usize);
        #[link_name = "log"]
        fn log_write(level: i32, ptr: *const u8, len: usize);
        safe fn deadline() -> i64;
        #[link_name = "progress"]
        fn progress_write(done: f64, total: f64, ptr: *const u8, len: usize);
    }

    // The host has all of WASI preview 1 for every module, so these work on wasm32-unknown-unknown, too.
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        fn random_get(ptr: *mut u8, len: usize) -> i32;
        fn clock_time_get(clock: i32, precision: i64, time: *mut u64) -> i32;
    }

    /// Returns the call's arguments.
    pub(crate) fn input() -> Vec<u8> {
        let mut input = vec![0; input_size()];
        // SAFETY: the host writes input_size bytes, the same in each call, and that many are allocated.
        unsafe { input_read(input.as_mut_ptr()) };
        input
    }

    /// Gives the host the result.
    pub(crate) fn output(text: &[u8]) {
        // SAFETY: the host reads text and keeps no pointer.
        unsafe { output_write(text.as_ptr(), text.len()) };
    }

    /// Gives the host the failure.
    pub(crate) fn fail(text: &[u8]) {
        // SAFETY: as in output.
        unsafe { fail_write(text.as_ptr(), text.len()) };
    }

    /// Writes a line to the host's log.
    pub(crate) fn log(level: Level, message: &str) {
        // SAFETY: as in output.
        unsafe { log_write(level as i32, message.as_ptr(), message.len()) };
    }

    /// Reports how much of its work the call has done. The host takes 0 for a total that is not known.
    pub(crate) fn progress(_: &Call, done: f64, total: Option<f64>, message: &str) {
        // SAFETY: as in output.
        unsafe { progress_write(done, total.unwrap_or(0.0), message.as_ptr(), message.len()) };
    }

    /// Returns what [`progress`] has kept: the host has got it all.
    pub(crate) fn reports(_: Call) -> Vec<Report> {
        Vec::new()
    }

    /// Returns the milliseconds that the call has left, -1 where there is no call.
    pub(crate) fn milliseconds_left() -> i64 {
        deadline()
    }

    /// Fills `to` with random bytes.
    pub(crate) fn random(to: &mut [u8]) {
        // SAFETY: the host writes as many bytes as there are.
        let failed = unsafe { random_get(to.as_mut_ptr(), to.len()) };
        assert!(failed == 0, "the host gives no randomness"); // better no answer than a key that can be guessed
    }

    /// Returns the time.
    pub(crate) fn now() -> SystemTime {
        let mut nanoseconds = 0;
        // SAFETY: the host writes 8 bytes. It never fails for clock 0, the real time.
        unsafe { clock_time_get(0, 1, &mut nanoseconds) };
        UNIX_EPOCH + Duration::from_nanos(nanoseconds)
    }
}

/// What stands in for the host in native tests.
#[cfg(not(target_family = "wasm"))]
mod native {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::PoisonError;
    use std::time::SystemTime;

    use crate::testing::Report;
    use crate::{Call, Level};

    // Natively nothing is called by number: the exports, which need these, exist on wasm only.
    pub(crate) fn input() -> Vec<u8> {
        Vec::new()
    }

    pub(crate) fn output(_: &[u8]) {}

    pub(crate) fn fail(_: &[u8]) {}

    pub(crate) fn log(level: Level, message: &str) {
        eprintln!("{level:?}: {message}");
    }

    /// Keeps the report for the test. One that makes no sense is dropped, as the host drops it.
    pub(crate) fn progress(call: &Call, done: f64, total: Option<f64>, message: &str) {
        let mut reports = call.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if done.is_finite() && done >= 0.0 && reports.last().is_none_or(|last| done > last.done) {
            reports.push(Report { done, total, message: message.to_owned() });
        }
    }

    /// Returns what [`progress`] has kept.
    pub(crate) fn reports(call: Call) -> Vec<Report> {
        call.reports.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn milliseconds_left() -> i64 {
        -1
    }

    /// Fills `to` with bytes that differ from run to run, which is enough for tests.
    pub(crate) fn random(to: &mut [u8]) {
        for chunk in to.chunks_mut(8) {
            let random = RandomState::new().hash_one(0u8).to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(random) {
                *to = from;
            }
        }
    }

    pub(crate) fn now() -> SystemTime {
        SystemTime::now()
    }
}
