//! JSONPath (RFC 9535): finds values in a document. What a query may cost is bounded before it runs.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use serde_json_path::JsonPath;
use serde_json_path::functions::{LogicalType, ValueType};
use toolsrv::Error;

use crate::pointer::within;

/// How deep brackets and parentheses of a query may nest: each level takes stack.
const MAX_NESTING: usize = 20;

/// How many values a query may find on its way, at a rough guess.
const MAX_FOUND: usize = 2_000_000;

/// How many bytes of JSON the result may have.
const MAX_RESULT: usize = 3 << 20;

/// Runs a query and returns what it finds, in the order of the query: values, or JSON Pointers to them.
pub fn find(document: &Value, text: &str, pointers: bool) -> Result<Box<RawValue>, Error> {
    bound(document, text)?;
    let query = JsonPath::parse(text).map_err(|e| {
        let position = e.position().min(text.len());
        let position = text.as_bytes()[..position].iter().filter(|b| **b & 0xc0 != 0x80).count() + 1;
        Error::new(format!("The query is no JSONPath: at character {position}: {}.", e.message()))
            .code("syntax")
            .data(serde_json::json!({ "position": position }))
    })?;
    let found = query.query(document).all();
    let result =
        if pointers { Places::of(&found, document).and_then(|pointers| write(&pointers)) } else { write(&found) };
    result.ok_or_else(|| {
        Error::new("The query finds more than the 3 MB that a result may have: make it more specific.")
            .code("too_large")
    })
}

/// Where values stand. They are found by their addresses in the document: lists of places that grow from step to step
/// of a query would take many times the memory.
struct Places {
    wanted: Vec<(*const Value, usize)>, // sorted
    pointers: Vec<String>,
    room: usize,
}

impl Places {
    fn of(found: &[&Value], document: &Value) -> Option<Vec<String>> {
        let mut wanted: Vec<_> = found.iter().enumerate().map(|(i, value)| (std::ptr::from_ref(*value), i)).collect();
        wanted.sort_unstable();
        let mut places = Self { wanted, pointers: vec![String::new(); found.len()], room: MAX_RESULT };
        places.look(document, &mut String::new())?;
        Some(places.pointers)
    }

    /// Looks for values that are wanted at a place and below it, and returns None where their pointers get too long.
    fn look(&mut self, value: &Value, pointer: &mut String) -> Option<()> {
        let here = std::ptr::from_ref(value);
        let start = self.wanted.partition_point(|(at, _)| *at < here);
        for (_, i) in self.wanted[start..].iter().take_while(|(at, _)| *at == here) {
            self.room = self.room.checked_sub(pointer.len() + 3)?;
            self.pointers[*i].clone_from(pointer);
        }
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| within(pointer, &i.to_string(), |pointer| self.look(item, pointer))),
            Value::Object(members) => {
                members.iter().try_for_each(|(name, value)| within(pointer, name, |pointer| self.look(value, pointer)))
            }
            _ => Some(()),
        }
    }
}

/// A result that stops where it would grow too large. Values are written where they stand: the same one may be found
/// many times.
struct Bounded(Vec<u8>);

fn write(found: &impl Serialize) -> Option<Box<RawValue>> {
    let mut result = Bounded(Vec::new());
    serde_json::to_writer(&mut result, found).ok()?;
    RawValue::from_string(String::from_utf8(result.0).ok()?).ok()
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RESULT {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Refuses a query whose cost could grow beyond bounds.
fn bound(document: &Value, text: &str) -> Result<(), Error> {
    let (mut nesting, mut deepest, mut descents) = (0usize, 0, 0u32);
    let (mut selectors, mut repeated) = (1usize, 1usize);
    let (mut quote, mut before) = (None, ' ');
    for c in text.chars() {
        match (quote, c) {
            (Some(_), _) if before == '\\' => {
                before = ' '; // whatever is escaped ends nothing
                continue;
            }
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[') => nesting += 1,
            (None, ')' | ']') => {
                nesting = nesting.saturating_sub(1);
                if nesting == 0 {
                    repeated = repeated.saturating_mul(std::mem::replace(&mut selectors, 1));
                }
            }
            (None, ',') if nesting == 1 => selectors += 1,
            (None, '.') if before == '.' => descents += 1,
            _ => {}
        }
        deepest = deepest.max(nesting);
        before = c;
    }
    if deepest > MAX_NESTING {
        return Err(
            Error::new(format!("The query nests brackets more than {MAX_NESTING} deep: simplify it.")).code("too_deep")
        );
    }
    // Each further descent may find a value once for each of the levels above it, each selector of a list once more.
    let mut size = (0, 0);
    measure(document, 1, &mut size);
    let levels = usize::saturating_pow(size.1, descents.saturating_sub(1));
    if size.0.saturating_mul(levels).saturating_mul(repeated) > MAX_FOUND {
        return Err(Error::new(format!(
            "The query could find more than {MAX_FOUND} values: use \"..\" and lists of selectors less often, or pass a part of the document."
        ))
        .code("too_expensive"));
    }
    Ok(())
}

/// Counts values and levels.
fn measure(value: &Value, level: usize, size: &mut (usize, usize)) {
    *size = (size.0 + 1, size.1.max(level));
    match value {
        Value::Array(items) => items.iter().for_each(|item| measure(item, level + 1, size)),
        Value::Object(members) => members.values().for_each(|value| measure(value, level + 1, size)),
        _ => {}
    }
}

/// The function match of RFC 9535: whether a pattern matches the whole of a string.
#[serde_json_path::function(name = "match")]
fn matches(text: ValueType, pattern: ValueType) -> LogicalType {
    fits(&text, &pattern, |pattern| format!("^(?:{pattern})$"))
}

/// The function search of RFC 9535: whether a pattern matches a part of a string.
#[serde_json_path::function]
fn search(text: ValueType, pattern: ValueType) -> LogicalType {
    fits(&text, &pattern, str::to_string)
}

/// A pattern that is none matches nothing, says the standard. Its crate takes time in proportion to pattern times text.
fn fits(text: &ValueType, pattern: &ValueType, whole: fn(&str) -> String) -> LogicalType {
    let (Some(Value::String(text)), Some(Value::String(pattern))) = (text.as_value(), pattern.as_value()) else {
        return LogicalType::False;
    };
    match regex_lite::RegexBuilder::new(&whole(pattern)).size_limit(1 << 20).build() {
        Ok(regex) if regex.is_match(text) => LogicalType::True,
        _ => LogicalType::False,
    }
}
