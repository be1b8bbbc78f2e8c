//! The functions match and search of JSONPath, with a library that has no tables of Unicode, so that the module stays
//! small.

use std::cell::{Cell, RefCell};

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;
use serde_json_path::functions::{LogicalType, ValueType};

/// How many bytes a compiled pattern may have: compiling and matching take time in proportion.
const MAX_PATTERN: usize = 256 << 10;

thread_local! {
    /// The last pattern, which the next value is most often compared with, too. None is one that is not valid.
    static LAST: RefCell<(String, Option<Regex>)> = RefCell::default();

    /// Whether a pattern was larger than `MAX_PATTERN`: a function can't return an error.
    static TOO_LARGE: Cell<bool> = const { Cell::new(false) };
}

/// Forgets the last pattern, and returns whether one was too large.
pub fn was_too_large() -> bool {
    LAST.take();
    TOO_LARGE.take()
}

#[serde_json_path::function(name = "match")]
fn matches(text: ValueType, pattern: ValueType) -> LogicalType {
    test(&text, &pattern, |pattern| format!("^(?R:{pattern})$"))
}

#[serde_json_path::function(name = "search")]
fn search(text: ValueType, pattern: ValueType) -> LogicalType {
    test(&text, &pattern, |pattern| format!("(?R:{pattern})"))
}

/// Tests a text with a pattern of RFC 9485, where a point does not match a line end. An invalid pattern matches nothing.
fn test(text: &ValueType, pattern: &ValueType, whole: impl FnOnce(&str) -> String) -> LogicalType {
    let (Some(Value::String(text)), Some(Value::String(pattern))) = (text.as_value(), pattern.as_value()) else {
        return LogicalType::False;
    };
    let pattern = whole(pattern);
    LAST.with_borrow_mut(|(last, regex)| {
        if *last != pattern {
            let compiled = RegexBuilder::new(&pattern).size_limit(MAX_PATTERN).build();
            if compiled.as_ref().is_err_and(|e| e.to_string().contains("size limit")) {
                TOO_LARGE.set(true);
            }
            *regex = compiled.ok();
            *last = pattern;
        }
        regex.as_ref().is_some_and(|regex| regex.is_match(text)).into()
    })
}
