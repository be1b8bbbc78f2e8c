//! Bytes that are kept under names from one call to the next: all that a tool can keep. The tool declares that it needs them
//! (`needs(kv = true)`) and the operator grants a quota; the tools of a namespace share their keys.
//!
//! What a function has written is there, whatever happens after that. Calls run at the same time: a value that depends on
//! what was there is written with [`create`] or [`update`], which fail where another call was faster, or with [`change`],
//! which then tries again. A [`Failure`] has one of the common codes, or `conflict` or `quota`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{Call, Error, Failure, granted};

/// What is under a key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The bytes.
    pub value: Vec<u8>,
    /// Another one after each write, and never 0.
    pub version: u64,
    /// When the entry goes away, in whole milliseconds, or `None` if it stays.
    pub expires: Option<SystemTime>,
}

/// What is to be there for a write or a removal; any other number is a version.
const WHATEVER: i64 = -1;
const NOTHING: i64 = 0;

/// How often [`change`] tries before it gives up: with so many writers of one key, waiting is no help.
const ATTEMPTS: usize = 64;

/// Returns what is under a key.
pub fn get(call: &Call, key: impl AsRef<str>) -> Result<Option<Entry>, Failure> {
    let mut answer = granted::get(call, key.as_ref())?;
    if answer.is_empty() {
        return Ok(None);
    }
    let short = || Failure::broken("an entry has less than its version and expiry");
    let version = number(&answer).ok_or_else(short)?;
    let expires = number(answer.get(8..).unwrap_or_default()).ok_or_else(short)?;
    answer.drain(..16);
    let expires = (expires != 0).then(|| UNIX_EPOCH + Duration::from_millis(expires));
    Ok(Some(Entry { value: answer, version, expires }))
}

/// Reads the number that bytes begin with.
fn number(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().copied().map(u64::from_le_bytes)
}

/// Puts a value under a key, whatever is there, and returns its version. It goes away after `ttl`, which counts in whole
/// milliseconds; `None` keeps it.
pub fn set(
    call: &Call,
    key: impl AsRef<str>,
    value: impl AsRef<[u8]>,
    ttl: impl Into<Option<Duration>>,
) -> Result<u64, Failure> {
    put(call, key.as_ref(), value.as_ref(), ttl.into(), WHATEVER)
}

/// Is [`set`], but fails with the code `conflict` if there is anything under the key.
pub fn create(
    call: &Call,
    key: impl AsRef<str>,
    value: impl AsRef<[u8]>,
    ttl: impl Into<Option<Duration>>,
) -> Result<u64, Failure> {
    put(call, key.as_ref(), value.as_ref(), ttl.into(), NOTHING)
}

/// Is [`set`], but fails with the code `conflict` if what is under the key does not have this version. Version 0 means that
/// there is nothing.
pub fn update(
    call: &Call,
    key: impl AsRef<str>,
    value: impl AsRef<[u8]>,
    ttl: impl Into<Option<Duration>>,
    version: u64,
) -> Result<u64, Failure> {
    put(call, key.as_ref(), value.as_ref(), ttl.into(), expect(version)?)
}

fn put(call: &Call, key: &str, value: &[u8], ttl: Option<Duration>, expect: i64) -> Result<u64, Failure> {
    let ttl = ttl.map_or(0, |ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX).max(1));
    let answer = granted::set(call, key, value, ttl, expect)?;
    number(&answer).ok_or_else(|| Failure::broken("a version has not 8 bytes"))
}

/// Returns a version as the host takes it.
fn expect(version: u64) -> Result<i64, Failure> {
    i64::try_from(version).map_err(|_| Failure::new("invalid", format_args!("{version} is not a version")))
}

/// Puts under a key what `change` makes of the entry there, and tries again where another call was faster. An error of
/// `change` ends it, and so does a conflict at the 64th attempt.
pub fn change<E: Into<Error>>(
    call: &Call,
    key: impl AsRef<str>,
    ttl: impl Into<Option<Duration>>,
    mut change: impl FnMut(Option<Entry>) -> Result<Vec<u8>, E>,
) -> Result<u64, Error> {
    let (key, ttl) = (key.as_ref(), ttl.into());
    for _ in 0..ATTEMPTS {
        let entry = get(call, key)?;
        let version = entry.as_ref().map_or(0, |entry| entry.version);
        match update(call, key, change(entry).map_err(Into::into)?, ttl, version) {
            Err(failure) if failure.code() == "conflict" => {}
            outcome => return Ok(outcome?),
        }
    }
    Err(Failure::new("conflict", format_args!("too many calls write the key {key} at once: try again")).into())
}

/// Removes what is under a key, and returns whether there was anything.
pub fn delete(call: &Call, key: impl AsRef<str>) -> Result<bool, Failure> {
    remove(call, key.as_ref(), WHATEVER)
}

/// Is [`delete`], but fails with the code `conflict` if what is under the key does not have this version.
pub fn delete_version(call: &Call, key: impl AsRef<str>, version: u64) -> Result<bool, Failure> {
    remove(call, key.as_ref(), expect(version)?)
}

fn remove(call: &Call, key: &str, expect: i64) -> Result<bool, Failure> {
    match granted::delete(call, key, expect)?.as_slice() {
        [found] => Ok(*found == 1),
        _ => Err(Failure::broken("a removal has not 1 byte")),
    }
}

/// Some of the keys.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Keys {
    /// The keys, in the order of their bytes.
    pub keys: Vec<String>,
    /// Whether more come after them.
    pub more: bool,
}

/// Returns keys that begin with `prefix` and come after a key, `limit` of them at most. An empty `after` begins with the
/// first. The host may return less than `limit`; 0 leaves their number to it.
pub fn list(call: &Call, prefix: impl AsRef<str>, after: impl AsRef<str>, limit: usize) -> Result<Keys, Failure> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let answer = granted::list(call, prefix.as_ref(), after.as_ref(), limit)?;
    let (more, mut rest) = answer.split_first().ok_or_else(|| Failure::broken("a list is empty"))?;
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let (key, next) = first_key(rest).ok_or_else(|| Failure::broken("a list ends within a key"))?;
        keys.push(key);
        rest = next;
    }
    Ok(Keys { keys, more: *more == 1 })
}

/// Reads the first key of a list, and returns it with what follows.
fn first_key(list: &[u8]) -> Option<(String, &[u8])> {
    let (size, rest) = list.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)?;
    Some((String::from_utf8_lossy(key).into_owned(), rest))
}
