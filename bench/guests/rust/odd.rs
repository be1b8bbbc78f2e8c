//! Calls that do not end as nicely as they begin: 0 grows its memory by a little, as an allocation does that finds the
//! heap empty, 1 traps, 2 never returns, and 3 grows its memory by a megabyte.

mod abi;

use std::hint::black_box;

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 {
    let input = abi::input();
    match tool {
        0 => grow(64 << 10, &input),
        1 => core::arch::wasm32::unreachable(),
        2 => {
            let mut n = 0u64;
            loop {
                n = black_box(n + 1);
            }
        }
        3 => grow(1 << 20, &input),
        _ => 2,
    }
}

/// Takes so much memory that there is none yet, and writes to each page of it.
fn grow(size: usize, input: &[u8]) -> i32 {
    let mut block = vec![0u8; size];
    for page in block.chunks_mut(4096) {
        page[0] = input.len() as u8;
    }
    black_box(&block);
    abi::output("true");
    0
}
