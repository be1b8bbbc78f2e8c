//! ABI 1 as a guest sees it, by hand: what an SDK would hide.

#![allow(dead_code)] // not every guest takes input

#[link(wasm_import_module = "toolsrv_v1")]
unsafe extern "C" {
    fn input_size() -> usize;
    fn input_read(ptr: *mut u8);
    fn output_write(ptr: *const u8, len: usize);
}

/// The arguments of the call, JSON.
pub fn input() -> Vec<u8> {
    unsafe {
        let mut text = vec![0; input_size()];
        input_read(text.as_mut_ptr());
        text
    }
}

/// Makes text the result of the call.
pub fn output(text: &str) {
    unsafe { output_write(text.as_ptr(), text.len()) }
}
