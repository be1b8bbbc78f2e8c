//! JSON Patch (RFC 6902): applies operations one after the other, all of them or none.

use jsonptr::Pointer;
use serde_json::{Map, Value};
use toolsrv::Error;

use crate::equal::equal;
use crate::pointer::{self, show};

/// How deep a document may become. It is as deep as what can be read again.
const MAX_DEPTH: usize = 120;

/// How many values may be copied: copies of copies double with each operation.
const MAX_COPIED: usize = 200_000;

/// What an operation does.
#[derive(Clone, Copy)]
enum Op {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

/// One operation, its places parsed.
struct Operation<'a> {
    op: Op,
    path: &'a Pointer,
    from: Option<&'a Pointer>,
    value: Option<&'a Value>,
}

/// Applies the operations of a patch to a document. An operation that can't be applied is an error, and so is a test
/// that fails.
pub fn apply(mut document: Value, patch: &[Map<String, Value>]) -> Result<Value, Error> {
    let mut copied = 0;
    for (i, members) in patch.iter().enumerate() {
        let failed = |code: &str, what: String| {
            let op = members.get("op").and_then(Value::as_str).unwrap_or("?");
            Error::new(format!("Operation {i} ({}): {what}.", pointer::quote(op).trim_matches('"')))
                .code(code)
                .data(serde_json::json!({ "operation": i }))
        };
        let operation = read(members).map_err(|what| failed("invalid_operation", what))?;
        let fits = |value: &Value, copied: &mut usize| {
            let deepest = operation.path.count() + depth(value, MAX_DEPTH, copied);
            if deepest > MAX_DEPTH {
                return Err(failed("too_deep", format!("the document would be more than {MAX_DEPTH} levels deep")));
            }
            if *copied > MAX_COPIED {
                return Err(failed("too_large", format!("the patch copies more than {MAX_COPIED} values")));
            }
            Ok(())
        };
        let conflict = |what| failed("conflict", what);
        let path = operation.path;
        match (operation.op, operation.from, operation.value) {
            (Op::Test, _, Some(value)) => {
                let found = pointer::find(path, &mut document).map_err(conflict)?;
                if !equal(found, value) {
                    return Err(failed("test_failed", format!("{} does not equal the value", show(path))).status(409));
                }
            }
            (Op::Remove, ..) => drop(remove(&mut document, path).map_err(conflict)?),
            (Op::Replace, _, Some(value)) => {
                fits(value, &mut 0)?;
                *pointer::find(path, &mut document).map_err(conflict)? = value.clone();
            }
            (Op::Add, _, Some(value)) => {
                fits(value, &mut 0)?;
                add(&mut document, path, value.clone()).map_err(conflict)?;
            }
            (Op::Copy, Some(from), _) => {
                let value = pointer::find(from, &mut document).map_err(conflict)?;
                fits(value, &mut copied)?;
                let value = value.clone();
                add(&mut document, path, value).map_err(conflict)?;
            }
            (Op::Move, Some(from), _) => {
                if from != path && path.starts_with(from) {
                    return Err(conflict(format!("{} can't be moved into itself", show(from))));
                }
                fits(pointer::find(from, &mut document).map_err(conflict)?, &mut 0)?;
                if from != path {
                    let value = remove(&mut document, from).map_err(conflict)?;
                    add(&mut document, path, value).map_err(conflict)?;
                }
            }
            _ => return Err(failed("invalid_operation", "a member is missing".to_string())),
        }
    }
    Ok(document)
}

/// Reads an operation. Members that the standard does not know are ignored, as it demands.
fn read(members: &Map<String, Value>) -> Result<Operation<'_>, String> {
    let op = match members.get("op").and_then(Value::as_str) {
        Some("add") => Op::Add,
        Some("remove") => Op::Remove,
        Some("replace") => Op::Replace,
        Some("move") => Op::Move,
        Some("copy") => Op::Copy,
        Some("test") => Op::Test,
        _ => return Err("\"op\" has to be add, remove, replace, move, copy or test".to_string()),
    };
    let place = |name: &str| match members.get(name) {
        Some(Value::String(text)) => pointer::parse(text).map_err(|what| format!("\"{name}\": {what}")),
        Some(_) => Err(format!("\"{name}\" has to be a string, a JSON Pointer such as \"/items/0\"")),
        None => Err(format!("\"{name}\" is missing, a JSON Pointer such as \"/items/0\"")),
    };
    let path = place("path")?;
    let from = if matches!(op, Op::Move | Op::Copy) { Some(place("from")?) } else { None };
    let value = members.get("value");
    if value.is_none() && matches!(op, Op::Add | Op::Replace | Op::Test) {
        return Err("\"value\" is missing; pass null where null is meant".to_string());
    }
    Ok(Operation { op, path, from, value })
}

fn add(document: &mut Value, path: &Pointer, value: Value) -> Result<(), String> {
    let Some((place, name)) = path.split_back() else {
        *document = value;
        return Ok(());
    };
    let container = pointer::find(place, document)?;
    let index = container.is_array().then(|| pointer::index(place, container, &name)).transpose()?;
    match (container, index) {
        (Value::Object(members), _) => drop(members.insert(name.decoded().into_owned(), value)),
        (Value::Array(items), Some(i)) => items.insert(i, value),
        (other, _) => return Err(pointer::leads_nowhere(place, other, &name)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &Pointer) -> Result<Value, String> {
    let Some((place, name)) = path.split_back() else {
        return Ok(document.take()); // of the whole document, null is left
    };
    pointer::find(path, document)?;
    match pointer::find(place, document)? {
        Value::Object(members) => members.shift_remove(name.decoded().as_ref()),
        Value::Array(items) => name.to_index().ok().and_then(|i| i.for_len(items.len()).ok()).map(|i| items.remove(i)),
        _ => None,
    }
    .ok_or_else(|| format!("{} can't be removed", show(path)))
}

/// Returns how many levels a value has, and adds the number of values in it to count. It looks no deeper than most
/// allows.
fn depth(value: &Value, most: usize, count: &mut usize) -> usize {
    *count += 1;
    let below = |value: &Value, count: &mut usize| if most == 0 { 0 } else { depth(value, most - 1, count) };
    1 + match value {
        Value::Array(items) => items.iter().map(|item| below(item, count)).max().unwrap_or(0),
        Value::Object(members) => members.values().map(|value| below(value, count)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Applies a JSON Merge Patch (RFC 7396): members of the patch replace those of the document, null removes them.
pub fn merge(document: &mut Value, patch: Value) {
    let Value::Object(changes) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(members) = document else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.shift_remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), change);
        }
    }
}
