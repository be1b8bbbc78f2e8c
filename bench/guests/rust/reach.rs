//! The guest that uses capabilities: each tool has its own input, and uses what it is granted as an SDK would.

mod abi;

#[link(wasm_import_module = "toolsrv_http_v1")]
unsafe extern "C" {
    fn send(head: *const u8, head_len: usize, body: *const u8, body_len: usize) -> i32;
    #[link_name = "answer_read"]
    fn http_answer(to: *mut u8);
}

#[link(wasm_import_module = "toolsrv_kv_v1")]
unsafe extern "C" {
    fn get(key: *const u8, key_len: usize) -> i32;
    fn set(key: *const u8, key_len: usize, value: *const u8, value_len: usize, ttl: i64, expect: i64) -> i32;
    #[link_name = "answer_read"]
    fn kv_answer(to: *mut u8);
}

#[link(wasm_import_module = "toolsrv_tools_v1")]
unsafe extern "C" {
    fn call(id: *const u8, id_len: usize, arguments: *const u8, arguments_len: usize) -> i32;
    #[link_name = "answer_read"]
    fn tools_answer(to: *mut u8);
}

/// Copies an answer of n bytes, or the failure where n is below 0.
fn answer(n: i32, read: unsafe extern "C" fn(*mut u8)) -> Result<Vec<u8>, Vec<u8>> {
    let mut bytes = vec![0; n.unsigned_abs() as usize];
    unsafe { read(bytes.as_mut_ptr()) };
    if n < 0 { Err(bytes) } else { Ok(bytes) }
}

/// How often a call of fetch sends its request.
const FETCHES: u32 = 30;

/// Sends a GET to the URL, and returns the body of the answer.
fn fetch(url: &str) -> Result<Vec<u8>, Vec<u8>> {
    let head = format!(r#"{{"method":"GET","url":"{url}"}}"#);
    let n = unsafe { send(head.as_ptr(), head.len(), std::ptr::null(), 0) };
    let mut whole = answer(n, http_answer)?;
    let head = u32::from_le_bytes(whole[..4].try_into().unwrap()) as usize;
    whole.drain(..4 + head);
    Ok(whole)
}

/// Reads a key so often, and returns the number of bytes of the last answer.
fn read(key: &str, times: u32) -> Result<Vec<u8>, Vec<u8>> {
    let mut length = 0;
    for _ in 0..times {
        length = answer(unsafe { get(key.as_ptr(), key.len()) }, kv_answer)?.len();
    }
    Ok(length.to_string().into_bytes())
}

/// Keeps 100 bytes under a key.
fn keep(key: &str) -> Result<Vec<u8>, Vec<u8>> {
    let value = [b'v'; 100];
    answer(unsafe { set(key.as_ptr(), key.len(), value.as_ptr(), value.len(), 0, -1) }, kv_answer).map(|_| b"0".to_vec())
}

/// Calls the tool that adds, with its input as arguments.
fn add(arguments: &str) -> Result<Vec<u8>, Vec<u8>> {
    const ID: &str = "bench/add";
    answer(unsafe { call(ID.as_ptr(), ID.len(), arguments.as_ptr(), arguments.len()) }, tools_answer)
}

/// The value of the only member of a JSON object, a text without escapes.
fn text(input: &str) -> &str {
    input.split('"').nth(3).unwrap_or_default()
}

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_warm() {
    std::hint::black_box(format!("{:?}", text(r#"{"key":"value"}"#)));
}

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 {
    let input = String::from_utf8(abi::input()).unwrap_or_default();
    let result = match tool {
        0 => (1..FETCHES).try_for_each(|_| fetch(text(&input)).map(drop)).and_then(|()| fetch(text(&input))),
        1 => read(text(&input), 1),
        2 => read(text(&input), 1001),
        3 => keep(text(&input)),
        4 => add(&input),
        _ => Ok(b"5".to_vec()),
    };
    match result {
        Ok(bytes) => {
            abi::output(std::str::from_utf8(&bytes).unwrap_or("null"));
            0
        }
        Err(failure) => {
            abi::output(std::str::from_utf8(&failure).unwrap_or("null"));
            1
        }
    }
}
