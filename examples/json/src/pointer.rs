//! JSON Pointers (RFC 6901), with errors that say which part of one leads nowhere.

use std::fmt;

use serde_json::Value;

/// A parsed JSON Pointer: the names and indexes on the way to a value, unescaped.
#[derive(Clone, PartialEq)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Parses a pointer: empty, or each part after a "/", where "~1" means "/" and "~0" means "~".
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(parts) = text.strip_prefix('/') else {
            return if text.is_empty() {
                Ok(Self(Vec::new()))
            } else {
                Err(format!("{} does not start with \"/\"; a pointer is like \"/items/0/price\"", quote(text)))
            };
        };
        parts.split('/').map(unescape).collect::<Result<_, _>>().map(Self)
    }

    /// Returns how many parts it has.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Splits off the last part; None for the whole document.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        let (last, parent) = self.0.split_last()?;
        Some((Self(parent.to_vec()), last))
    }

    /// Whether other is at a place within the value that this one points to.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.len() > self.0.len() && other.0.starts_with(&self.0)
    }

    /// Finds the value, or says where the way ends.
    pub fn find<'a>(&self, document: &'a mut Value) -> Result<&'a mut Value, String> {
        let mut at = document;
        for (i, part) in self.0.iter().enumerate() {
            let here = || Self(self.0[..i].to_vec());
            at = match at {
                Value::Object(members) => match members.get_mut(part) {
                    Some(value) => value,
                    None => return Err(no_member(&here(), part)),
                },
                Value::Array(items) => {
                    let len = items.len();
                    let i = index(&here(), part, len)?;
                    items.get_mut(i).ok_or_else(|| beyond(&here(), part, len))?
                }
                other => return Err(no_container(&here(), other)),
            };
        }
        Ok(at)
    }
}

/// Writes the pointer as it would be typed, but shortened: it stands in error messages.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "the document");
        }
        let text: String =
            self.0.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect();
        write!(f, "{}", quote(&text))
    }
}

/// Reads a part of a pointer as the index of an array of so many items; it may be one beyond them.
pub fn index(array: &Pointer, part: &str, len: usize) -> Result<usize, String> {
    if part == "-" {
        return Ok(len);
    }
    let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits || (part.len() > 1 && part.starts_with('0')) {
        return Err(format!(
            "{array} is an array, and {} is no index: pass digits without zeros in front",
            quote(part)
        ));
    }
    match part.parse() {
        Ok(i) if i <= len => Ok(i),
        _ => Err(beyond(array, part, len)),
    }
}

/// Says that an index leads nowhere.
pub fn beyond(array: &Pointer, part: &str, len: usize) -> String {
    match len {
        0 => format!("{array} is an empty array, so there is no item {}", quote(part)),
        1 => format!("{array} has 1 item, so there is no item {}; the only one is at 0", quote(part)),
        len => format!("{array} has {len} items, so there is no item {}; the last is at {}", quote(part), len - 1),
    }
}

/// Says that an object lacks a member.
pub fn no_member(object: &Pointer, name: &str) -> String {
    format!("{object} has no member {}", quote(name))
}

/// Says that a value holds no others.
pub fn no_container(place: &Pointer, value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("{place} is {kind}, which has no members")
}

/// Writes a name as JSON, shortened where it is long.
pub fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Value::from(short).to_string()
}

/// Calls f with the pointer to a member of the value that the pointer leads to.
pub fn within<T>(pointer: &mut String, name: &str, f: impl FnOnce(&mut String) -> T) -> T {
    let len = pointer.len();
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    let result = f(pointer);
    pointer.truncate(len);
    result
}

fn unescape(part: &str) -> Result<String, String> {
    let mut pieces = part.split('~');
    let mut name = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        name.push(match piece.as_bytes().first() {
            Some(b'0') => '~',
            Some(b'1') => '/',
            _ => return Err(format!("{}: \"~\" is written \"~0\", and \"/\" within a name \"~1\"", quote(part))),
        });
        name.push_str(&piece[1..]);
    }
    Ok(name)
}
