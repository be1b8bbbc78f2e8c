//! What a JSONPath query is, once it has been read.

use regex_lite::Regex;
use serde_json::Value;

/// A query from the document, `$`, or from the value that a filter looks at, `@`.
pub struct Query {
    pub absolute: bool,
    pub segments: Vec<Segment>,
}

impl Query {
    /// Whether it finds one value at most, whatever the document.
    pub fn is_singular(&self) -> bool {
        self.segments.iter().all(|segment| {
            !segment.descend && matches!(segment.selectors.as_slice(), [Selector::Name(_) | Selector::Index(_)])
        })
    }
}

/// A step of a query: what it takes of each value that the steps before found, or of all values below it, too.
pub struct Segment {
    pub descend: bool,
    pub selectors: Vec<Selector>,
}

pub enum Selector {
    Name(String),
    Index(i64),
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    All,
    Filter(Test),
}

/// What a filter asks of a value.
pub enum Test {
    Any(Vec<Test>),
    All(Vec<Test>),
    Not(Box<Test>),
    Exists(Query),
    Compare(Operand, Comparison, Operand),
    Matches { whole: bool, text: Operand, pattern: Pattern },
}

#[derive(Clone, Copy, PartialEq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// What can be compared: it has one value, or none.
pub enum Operand {
    Literal(Value),
    Query(Query),
    Length(Box<Operand>),
    Count(Query),
    Value(Query),
}

/// A pattern that stands in the query is compiled once. One that is wrong matches nothing, as the standard has it.
pub enum Pattern {
    Compiled(Option<Regex>),
    Computed(Operand),
}

/// How many bytes a compiled pattern may have: compiling and matching take time in proportion.
const MAX_PATTERN: usize = 256 << 10;

/// Means that a pattern is too large.
pub struct TooLarge;

/// Compiles a pattern of RFC 9485, where a point is no line end. One that is wrong is None.
pub fn compile(pattern: &str, whole: bool) -> Result<Option<Regex>, TooLarge> {
    let pattern = if whole { format!("^(?R:{pattern})$") } else { format!("(?R:{pattern})") };
    match regex_lite::RegexBuilder::new(&pattern).size_limit(MAX_PATTERN).build() {
        Ok(regex) => Ok(Some(regex)),
        Err(e) if e.to_string().contains("size limit") => Err(TooLarge),
        Err(_) => Ok(None),
    }
}
