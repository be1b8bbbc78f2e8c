//! What the errors of JSON Pointers (RFC 6901) say: which part of one leads nowhere, and why.

use jsonptr::resolve;
use jsonptr::{ParseError, Pointer, Token};
use serde_json::Value;

/// Parses a pointer, or says what is wrong with it.
pub fn parse(text: &str) -> Result<&Pointer, String> {
    Pointer::parse(text).map_err(|e| match e {
        ParseError::NoLeadingSlash => {
            format!("{} does not start with \"/\"; a pointer is like \"/items/0/price\"", quote(text))
        }
        ParseError::InvalidEncoding { .. } => {
            format!("{}: \"~\" is written \"~0\", and \"/\" within a name \"~1\"", quote(text))
        }
    })
}

/// Finds a value, or says where the way to it ends.
pub fn find<'a>(path: &Pointer, document: &'a mut Value) -> Result<&'a mut Value, String> {
    if let Err(e) = path.resolve(&*document) {
        return Err(explain(path, document, &e));
    }
    path.resolve_mut(document).map_err(|e| e.to_string())
}

fn explain(path: &Pointer, document: &Value, error: &resolve::Error) -> String {
    let at = error.position();
    let here = path.get(..at).unwrap_or(Pointer::root());
    match (here.resolve(document), path.get(at)) {
        (Ok(value), Some(part)) => leads_nowhere(here, value, &part),
        _ => error.to_string(),
    }
}

/// Returns the index that a part of a pointer is in an array of so many items; it may be one beyond them.
pub fn index(array: &Pointer, items: &Value, part: &Token) -> Result<usize, String> {
    let len = items.as_array().map_or(0, Vec::len);
    let index = part.to_index().ok().and_then(|index| index.for_len_incl(len).ok());
    index.ok_or_else(|| leads_nowhere(array, items, part))
}

/// Says why there is nothing at a part of a pointer within a value.
pub fn leads_nowhere(place: &Pointer, value: &Value, part: &Token) -> String {
    let (place, part) = (show(place), part.decoded());
    let name = quote(&part);
    let kind = match value {
        Value::Object(_) => return format!("{place} has no member {name}"),
        Value::Array(items) => {
            let digits = part.bytes().all(|b| b.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'));
            return match items.len() {
                _ if part != "-" && (part.is_empty() || !digits) => {
                    format!("{place} is an array, and {name} is not an index: pass digits without zeros in front")
                }
                0 => format!("{place} is an empty array, so there is no item {name}"),
                1 => format!("{place} has 1 item, so there is no item {name}; the only one is at 0"),
                len => format!("{place} has {len} items, so there is no item {name}; the last is at {}", len - 1),
            };
        }
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
    };
    format!("{place} is {kind}, which has no members")
}

/// Writes a pointer as it would be typed, but shortened: it stands in error messages.
pub fn show(path: &Pointer) -> String {
    if path.is_root() { "the document".to_string() } else { quote(path.as_str()) }
}

/// Writes a name as JSON, shortened where it is long.
pub fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Value::from(short).to_string()
}
