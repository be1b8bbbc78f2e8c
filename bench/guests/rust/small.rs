//! The small guest: one tool that adds the members "a" and "b" of a JSON object.

mod abi;

/// What the benchmarks overwrite to get modules that differ in their code.
#[unsafe(no_mangle)]
pub extern "C" fn variant() -> u32 {
    0x5eed5eed
}

/// Does what a call does, so that the heap is there before the snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_warm() {
    let arguments = Vec::from(br#"{"a": 2, "b": 3}"#);
    std::hint::black_box(add(&arguments).map(|sum| sum.to_string()));
}

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_call(_tool: i32) -> i32 {
    match add(&abi::input()) {
        Some(sum) => {
            abi::output(&sum.to_string());
            0
        }
        None => 2,
    }
}

/// Adds a and b. The host has validated the object: it has no member but these two integers.
fn add(text: &[u8]) -> Option<i64> {
    let object = std::str::from_utf8(text).ok()?.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut sum = 0i64;
    for member in object.split(',') {
        let (name, value) = member.split_once(':')?;
        if !matches!(name.trim(), "\"a\"" | "\"b\"") {
            return None;
        }
        sum = sum.checked_add(value.trim().parse().ok()?)?;
    }
    Some(sum)
}
