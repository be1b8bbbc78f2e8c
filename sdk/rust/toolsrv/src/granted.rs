//! The host's functions that need a grant. The linker drops each import where nothing calls it. Natively a
//! [`World`](crate::testing::World) of the test's stands in.

#[cfg(target_family = "wasm")]
pub(crate) use wasm::*;

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::*;

#[cfg(target_family = "wasm")]
#[allow(unsafe_code)]
mod wasm {
    use crate::{Call, Failure};

    // Each function returns how many bytes its answer has, or what the bytes of a failure are below 0; answer_read copies
    // them to where the guest has room for as many.
    macro_rules! imports {
        ($($module:literal $read:ident { $($name:literal $function:ident($($parameter:ident: $kind:ty),*)),* })*) => {$(
            #[link(wasm_import_module = $module)]
            unsafe extern "C" {
                #[link_name = "answer_read"]
                fn $read(to: *mut u8);
                $(#[link_name = $name] fn $function($($parameter: $kind),*) -> i32;)*
            }
        )*};
    }

    imports! {
        "toolsrv_http_v1" http_answer {
            "send" http_send(head: *const u8, head_len: usize, body: *const u8, body_len: usize)
        }
        "toolsrv_kv_v1" kv_answer {
            "get" kv_get(key: *const u8, key_len: usize),
            "set" kv_set(key: *const u8, key_len: usize, value: *const u8, value_len: usize, ttl: i64, expect: i64),
            "delete" kv_delete(key: *const u8, key_len: usize, expect: i64),
            "list" kv_list(prefix: *const u8, prefix_len: usize, after: *const u8, after_len: usize, limit: i32)
        }
        "toolsrv_secrets_v1" secrets_answer { "read" secrets_read(name: *const u8, name_len: usize) }
        "toolsrv_settings_v1" settings_answer { "read" settings_read() }
        "toolsrv_tools_v1" tools_answer {
            "call" tools_call(path: *const u8, path_len: usize, arguments: *const u8, arguments_len: usize)
        }
    }

    /// Takes the answer of a function that has returned `n`.
    fn answer(n: i32, read: unsafe extern "C" fn(*mut u8)) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; n.unsigned_abs() as usize];
        if n != 0 {
            // SAFETY: the host writes as many bytes as the function has announced, and that many are allocated.
            unsafe { read(bytes.as_mut_ptr()) };
        }
        if n < 0 { Err(Failure::read(&bytes)) } else { Ok(bytes) }
    }

    // SAFETY, of all that follow: the host reads as many bytes as it is told of, and keeps no pointer.

    pub(crate) fn send(_: &Call, head: &[u8], body: &[u8]) -> Result<Vec<u8>, Failure> {
        answer(unsafe { http_send(head.as_ptr(), head.len(), body.as_ptr(), body.len()) }, http_answer)
    }

    pub(crate) fn get(_: &Call, key: &str) -> Result<Vec<u8>, Failure> {
        answer(unsafe { kv_get(key.as_ptr(), key.len()) }, kv_answer)
    }

    pub(crate) fn set(_: &Call, key: &str, value: &[u8], ttl: i64, expect: i64) -> Result<Vec<u8>, Failure> {
        answer(unsafe { kv_set(key.as_ptr(), key.len(), value.as_ptr(), value.len(), ttl, expect) }, kv_answer)
    }

    pub(crate) fn delete(_: &Call, key: &str, expect: i64) -> Result<Vec<u8>, Failure> {
        answer(unsafe { kv_delete(key.as_ptr(), key.len(), expect) }, kv_answer)
    }

    pub(crate) fn list(_: &Call, prefix: &str, after: &str, limit: i32) -> Result<Vec<u8>, Failure> {
        answer(unsafe { kv_list(prefix.as_ptr(), prefix.len(), after.as_ptr(), after.len(), limit) }, kv_answer)
    }

    pub(crate) fn secret(_: &Call, name: &str) -> Result<Vec<u8>, Failure> {
        answer(unsafe { secrets_read(name.as_ptr(), name.len()) }, secrets_answer)
    }

    /// The only one that answers before there is a call.
    pub(crate) fn settings(_: Option<&Call>) -> Result<Vec<u8>, Failure> {
        answer(unsafe { settings_read() }, settings_answer)
    }

    pub(crate) fn call(_: &Call, path: &str, arguments: &[u8]) -> Result<Vec<u8>, Failure> {
        answer(unsafe { tools_call(path.as_ptr(), path.len(), arguments.as_ptr(), arguments.len()) }, tools_answer)
    }
}

#[cfg(not(target_family = "wasm"))]
mod native {
    use crate::testing::Host;
    use crate::{Call, Failure};

    /// Returns what stands in for the host.
    fn host(call: Option<&Call>) -> Result<&Host, Failure> {
        call.and_then(|call| call.host.as_ref()).ok_or_else(|| {
            Failure::new("not_granted", "nothing stands in for the host: have a toolsrv::testing::World call the tool")
        })
    }

    pub(crate) fn send(call: &Call, head: &[u8], body: &[u8]) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.send(head, body)
    }

    pub(crate) fn get(call: &Call, key: &str) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.get(key)
    }

    pub(crate) fn set(call: &Call, key: &str, value: &[u8], ttl: i64, expect: i64) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.set(key, value, ttl, expect)
    }

    pub(crate) fn delete(call: &Call, key: &str, expect: i64) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.delete(key, expect)
    }

    pub(crate) fn list(call: &Call, prefix: &str, after: &str, limit: i32) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.list(prefix, after, limit)
    }

    pub(crate) fn secret(call: &Call, name: &str) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.secret(name)
    }

    pub(crate) fn settings(call: Option<&Call>) -> Result<Vec<u8>, Failure> {
        host(call)?.settings()
    }

    pub(crate) fn call(call: &Call, path: &str, arguments: &[u8]) -> Result<Vec<u8>, Failure> {
        host(Some(call))?.call(path, arguments)
    }
}
