//! What patch leads from one document to another.

use serde_json::{Map, Value, json};

use crate::equal::equal;

/// Returns the operations of a JSON Patch that makes `to` of `from`. Of arrays, the start and the end that are equal stay.
pub fn diff(from: &Value, to: &Value) -> Vec<Value> {
    let mut patch = Vec::new();
    compare(from, to, &mut String::new(), &mut patch);
    patch
}

fn compare(from: &Value, to: &Value, path: &mut String, patch: &mut Vec<Value>) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => compare_objects(from, to, path, patch),
        (Value::Array(from), Value::Array(to)) => compare_arrays(from, to, path, patch),
        _ if equal(from, to) => {}
        _ => patch.push(json!({"op": "replace", "path": path, "value": to})),
    }
}

fn compare_objects(from: &Map<String, Value>, to: &Map<String, Value>, path: &mut String, patch: &mut Vec<Value>) {
    for (name, old) in from {
        within(path, name, |path| match to.get(name) {
            Some(new) => compare(old, new, path, patch),
            None => patch.push(json!({"op": "remove", "path": path})),
        });
    }
    for (name, new) in to {
        if !from.contains_key(name) {
            within(path, name, |path| patch.push(json!({"op": "add", "path": path, "value": new})));
        }
    }
}

fn compare_arrays(from: &[Value], to: &[Value], path: &mut String, patch: &mut Vec<Value>) {
    let start = from.iter().zip(to).take_while(|(a, b)| equal(a, b)).count();
    let (from, to) = (&from[start..], &to[start..]);
    let end = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| equal(a, b)).count();
    let (from, to) = (&from[..from.len() - end], &to[..to.len() - end]);
    let both = from.len().min(to.len());
    for i in 0..both {
        within(path, &(start + i).to_string(), |path| compare(&from[i], &to[i], path, patch));
    }
    for i in (both..from.len()).rev() {
        within(path, &(start + i).to_string(), |path| patch.push(json!({"op": "remove", "path": path})));
    }
    for (i, new) in to.iter().enumerate().skip(both) {
        within(path, &(start + i).to_string(), |path| patch.push(json!({"op": "add", "path": path, "value": new})));
    }
}

/// Calls f with the path of a member.
fn within(path: &mut String, name: &str, f: impl FnOnce(&mut String)) {
    let len = path.len();
    path.push('/');
    path.push_str(&name.replace('~', "~0").replace('/', "~1"));
    f(path);
    path.truncate(len);
}
