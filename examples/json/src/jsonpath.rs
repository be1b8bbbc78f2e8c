//! JSONPath (RFC 9535): finds values in a document.

mod pattern;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_json_path::{JsonPath, ParseError};
use toolsrv::Error;

/// How deep brackets and parentheses may be nested: the time that it takes to read a query doubles with each level.
const MAX_DEPTH: usize = 10;

/// How many bytes of JSON a result may have.
const MAX_RESULT: usize = 3 << 20;

/// Runs a query and returns what it finds, in the standard's order: values, or JSON Pointers to them.
pub fn find(document: &Value, text: &str, pointers: bool) -> Result<Box<RawValue>, Error> {
    let query = parse(text)?;
    let result = if pointers {
        write(query.query_located(document).locations().map(|place| place.to_json_pointer()))
    } else {
        write(query.query(document).iter())
    };
    if pattern::was_too_large() {
        return Err(Error::new("A pattern is too large: use repetitions like {1,99} less often.").code("too_expensive"));
    }
    result.ok_or_else(|| {
        Error::new("The query finds more than the 3 MB that a result may have: make it more specific.")
            .code("too_large")
    })
}

fn parse(text: &str) -> Result<JsonPath, Error> {
    let wrong = |at: usize, what: &str, code: &str| {
        let position = text.get(..at).unwrap_or(text).chars().count() + 1;
        Error::new(format!("At character {position} of the path: {what}."))
            .code(code)
            .data(serde_json::json!({ "position": position }))
    };
    if let Some(at) = too_deep(text) {
        return Err(wrong(at, "brackets and parentheses are nested more than 10 deep", "too_deep"));
    }
    JsonPath::parse(text).map_err(|e| wrong(e.position(), &explain(text, &e), "syntax"))
}

/// Returns where the first bracket or parenthesis beyond `MAX_DEPTH` stands.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(at);
        }
    }
    None
}

/// Says what is wrong with a query. The library knows the place, but often says no more than "parser error".
fn explain(text: &str, error: &ParseError) -> String {
    let rest = text.get(error.position()..).unwrap_or_default();
    let inside = rest.trim_start_matches(['[', ' ']);
    let (first, message) = (rest.chars().next(), error.message());
    let message = message.strip_prefix("in long-hand segment, ").unwrap_or(message);
    let hint = match (message, first) {
        _ if !text.starts_with('$') => "a query starts with \"$\", which stands for the document",
        (_, Some(_)) if rest.trim().is_empty() => "white space can't end a query",
        (m, Some('[')) if m.starts_with("in dot member name") => "write \"$.list[0]\" for \"$.list.[0]\"",
        (m, Some('0'..='9')) if m.starts_with("in dot member name") => {
            "a name that starts with a digit needs brackets and quotes, as in \"$['1st']\""
        }
        (m, _) if m.starts_with("in dot member name") => {
            "expected a name or \"*\"; other names need brackets and quotes, as in \"$['a-b']\""
        }
        ("expected an ending quote", None) => "the string has no quote at its end",
        ("expected an ending quote", _) => "a string can't contain this: there is no such escape, or one is missing",
        ("expected closing ']'", None) => "expected \",\" or \"]\", but the query ends",
        ("expected closing ']'", Some('=')) if !rest.starts_with("==") => "to compare values write \"==\"",
        ("expected closing ']'", _) if inside.starts_with(['=', '!', '<', '>']) => {
            "a comparison has one value on either side: a number, text in quotes, true, false, null, a query that finds \
             one value at most, or length(), count() or value(); !(…) negates it"
        }
        ("expected closing ']'", _) => "expected \",\" or \"]\"",
        (m, _) if m.ends_with("received literal") => "count() and value() take a query such as \"@.name\"",
        (m, _) if m.contains(" args, ") => "match() and search() take two arguments, the other functions one",
        ("parser error", Some('[')) if inside.starts_with('(') => {
            "there are no scripts: count from the end with a negative index, as in \"$.list[-1]\""
        }
        ("parser error", Some('[')) if inside.starts_with('@') => {
            "a filter starts with \"?\", as in \"[?@.price < 10]\""
        }
        ("parser error", Some('[')) if inside.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            "a name in brackets needs quotes, as in \"$['name']\""
        }
        ("parser error", Some('[')) => "expected a name in quotes, an index, a slice, \"*\" or a filter",
        ("parser error", _) if message != error.message() => "expected a comparison, a query, match() or search()",
        ("parser error", _) => "expected \".name\", \"..name\" or \"[\"",
        (m, _) if m.ends_with("is not defined") => {
            return format!("{m}; there are length, count, value, match and search");
        }
        _ => return message.to_string(),
    };
    hint.to_string()
}

/// A result that stops where it would grow too large: the same value may be found many times.
struct Bounded(Vec<u8>);

fn write(found: impl IntoIterator<Item = impl Serialize>) -> Option<Box<RawValue>> {
    let mut result = Bounded(Vec::new());
    serde_json::Serializer::new(&mut result).collect_seq(found).ok()?;
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
