//! What patch leads from one document to another.

use jsonptr::PointerBuf;
use serde_json::{Map, Value, json};
use toolsrv::Error;

use crate::equal::equal;

/// Returns the operations of a JSON Patch that makes `to` of `from`. Of arrays, the start and the end that are equal
/// stay.
pub fn diff(from: &Value, to: &Value) -> Result<Vec<Value>, Error> {
    let mut patch = Patch { operations: Vec::new(), room: MAX_PATHS };
    compare(from, to, &mut PointerBuf::new(), &mut patch).ok_or_else(|| {
        Error::new(
            "The documents differ in too many places for a patch: compare parts of them, or use the second as it is.",
        )
        .code("too_large")
    })?;
    Ok(patch.operations)
}

/// How many bytes paths may have in all, and operations count for as many more as they take beside paths and values.
/// Values have no more than the documents.
const MAX_PATHS: usize = 2 << 20;
const OPERATION: usize = 48;

struct Patch {
    operations: Vec<Value>,
    room: usize,
}

impl Patch {
    /// Adds an operation, or returns None where the patch gets too long.
    fn push(&mut self, op: &str, path: &PointerBuf, value: Option<&Value>) -> Option<()> {
        self.room = self.room.checked_sub(path.len() + OPERATION)?;
        let mut operation = json!({"op": op, "path": path.as_str()});
        if let (Some(members), Some(value)) = (operation.as_object_mut(), value) {
            members.insert("value".to_string(), value.clone());
        }
        self.operations.push(operation);
        Some(())
    }
}

fn compare(from: &Value, to: &Value, path: &mut PointerBuf, patch: &mut Patch) -> Option<()> {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => compare_objects(from, to, path, patch),
        (Value::Array(from), Value::Array(to)) => compare_arrays(from, to, path, patch),
        _ if equal(from, to) => Some(()),
        _ => patch.push("replace", path, Some(to)),
    }
}

fn compare_objects(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    path: &mut PointerBuf,
    patch: &mut Patch,
) -> Option<()> {
    for (name, old) in from {
        within(path, name, |path| match to.get(name) {
            Some(new) => compare(old, new, path, patch),
            None => patch.push("remove", path, None),
        })?;
    }
    for (name, new) in to.iter().filter(|(name, _)| !from.contains_key(*name)) {
        within(path, name, |path| patch.push("add", path, Some(new)))?;
    }
    Some(())
}

fn compare_arrays(from: &[Value], to: &[Value], path: &mut PointerBuf, patch: &mut Patch) -> Option<()> {
    let start = from.iter().zip(to).take_while(|(a, b)| equal(a, b)).count();
    let (from, to) = (&from[start..], &to[start..]);
    let end = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| equal(a, b)).count();
    let (from, to) = (&from[..from.len() - end], &to[..to.len() - end]);
    let mut at = |i: usize, f: &mut dyn FnMut(&mut PointerBuf) -> Option<()>| within(path, &(start + i).to_string(), f);
    let both = from.len().min(to.len());
    for i in 0..both {
        at(i, &mut |path| compare(&from[i], &to[i], path, patch))?;
    }
    for i in (both..from.len()).rev() {
        at(i, &mut |path| patch.push("remove", path, None))?;
    }
    for (i, new) in to.iter().enumerate().skip(both) {
        at(i, &mut |path| patch.push("add", path, Some(new)))?;
    }
    Some(())
}

/// Calls f with the pointer to a member of the value that the pointer leads to.
fn within<T>(path: &mut PointerBuf, name: &str, f: impl FnOnce(&mut PointerBuf) -> T) -> T {
    path.push_back(name);
    let result = f(path);
    path.pop_back();
    result
}
