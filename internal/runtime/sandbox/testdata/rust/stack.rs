// Breaks in the way that the tool's number says, some for want of the stack in its memory.
#![no_std]
use core::hint::black_box;
use core::mem::MaybeUninit;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

#[link(wasm_import_module = "toolsrv_v1")]
unsafe extern "C" {
    fn output_write(at: *const u8, len: usize);
    fn input_read(at: *mut u8);
}

#[inline(never)]
fn recurse(n: u32) -> u32 {
    let mut frame = [0u8; 1024];
    black_box(&mut frame);
    if n == 0 { 0 } else { recurse(n - 1) + u32::from(frame[n as usize % 1024]) }
}

#[inline(never)]
fn host(n: u32) -> u32 {
    let mut frame = MaybeUninit::<[u8; 4096]>::uninit();
    unsafe { input_read(frame.as_mut_ptr().cast()) };
    black_box(&mut frame);
    if n == 0 { 0 } else { host(n - 1) + 1 }
}

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 {
    black_box(match tool {
        0 => recurse(1 << 20),
        1 => host(1 << 20),
        2 => unsafe { *black_box(0xffff_fff0 as *const u32) },
        3 => [1u32, 2][black_box(7)],
        _ => recurse(10),
    });
    unsafe { output_write(b"1".as_ptr(), 1) };
    0
}
