//! Calls that do not end as nicely as they begin: 0 grows its memory, 1 traps, 2 never returns.

mod abi;

use std::hint::black_box;

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 {
    let input = abi::input();
    match tool {
        0 => {
            let mut block = vec![0u8; 1 << 20];
            for page in block.chunks_mut(4096) {
                page[0] = input.len() as u8;
            }
            black_box(&block);
            abi::output("true");
            0
        }
        1 => core::arch::wasm32::unreachable(),
        _ => {
            let mut n = 0u64;
            loop {
                n = black_box(n + 1);
            }
        }
    }
}
