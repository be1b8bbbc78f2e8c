//! JSONPath (RFC 9535): finds values in a document. What a query may cost is bounded.

mod filter;
mod finder;
mod parser;
mod query;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolsrv::Error;

use crate::pointer::within;
use finder::Finder;
use parser::Parser;

/// How many values a query may find, and how many bytes of JSON the result may have.
const MAX_FOUND: usize = 1_000_000;
const MAX_RESULT: usize = 3 << 20;

/// Runs a query and returns what it finds, in the standard's order: values, or JSON Pointers to them.
pub fn find(document: &Value, text: &str, pointers: bool) -> Result<Box<RawValue>, Error> {
    let mut parser = Parser::new(text);
    let query = parser.query().map_err(|fault| {
        let position = text[..parser.at].chars().count() + 1;
        Error::new(format!("At character {position} of the path: {}.", fault.what))
            .code(fault.code)
            .data(serde_json::json!({ "position": position }))
    })?;
    let mut found = Vec::new();
    let whole = Finder::new(document)
        .find(&query, document, &mut |value| {
            found.push(value);
            found.len() < MAX_FOUND
        })
        .map_err(|_| {
            Error::new(
                "The query has too much to look at: use \"..\" and nested filters less often, or pass a part of the document.",
            )
            .code("too_expensive")
        })?;
    let result = match pointers {
        _ if !whole => None,
        true => Places::of(&found, document).and_then(|pointers| write(&pointers)),
        false => write(&found),
    };
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

#[cfg(test)]
mod tests;
