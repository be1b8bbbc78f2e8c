//! Reads a JSONPath: steps and selectors.

use crate::jsonpath::query::{Query, Segment, Selector};
use crate::pointer::quote;

/// How many steps a query may have, and how deep its filters may nest: each takes stack.
const MAX_SEGMENTS: usize = 100;
const MAX_NESTING: usize = 10;

/// The largest index: JSON's numbers are exact up to it.
const MAX_INDEX: i64 = (1 << 53) - 1;

/// What is wrong with a query: a part of a sentence.
pub struct Fault {
    pub code: &'static str,
    pub what: String,
}

pub type Parsed<T> = Result<T, Fault>;

/// A parser, and how far it got: `at` always lies between two characters.
pub struct Parser<'a> {
    pub text: &'a str,
    pub at: usize,
    nesting: usize,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, nesting: 0 }
    }

    /// Reads a whole query.
    pub fn query(&mut self) -> Parsed<Query> {
        if !self.take("$") {
            return self.wrong("a query starts with \"$\", which stands for the document, as in \"$.name\"");
        }
        let segments = self.segments()?;
        match self.peek() {
            None => Ok(Query { absolute: true, segments }),
            Some(c) if is_space(c) => self.wrong("white space can't end a query"),
            Some(_) => self.expected("\".name\", \"..name\" or \"[\""),
        }
    }

    /// Reads the steps of a query, as many as there are.
    pub fn segments(&mut self) -> Parsed<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let descend = self.take("..");
            let selectors = if self.take("[") {
                self.bracketed()?
            } else if descend || self.take(".") {
                vec![self.dotted()?]
            } else {
                self.at = before;
                return Ok(segments);
            };
            segments.push(Segment { descend, selectors });
            if segments.len() > MAX_SEGMENTS {
                return self.too_deep(format!("the query has more than {MAX_SEGMENTS} steps"));
            }
        }
    }

    /// Reads what stands behind a point.
    fn dotted(&mut self) -> Parsed<Selector> {
        if self.take("*") {
            return Ok(Selector::All);
        }
        let rest = self.rest();
        let end = rest.find(|c| !is_name_start(c) && !char::is_ascii_digit(&c)).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.starts_with(is_name_start) {
            self.at += end;
            return Ok(Selector::Name(name.to_string()));
        }
        match self.peek() {
            Some('[') => self.wrong("no point stands before a bracket: write \"$.list[0]\" for \"$.list.[0]\""),
            Some(c) if c.is_ascii_digit() => {
                self.wrong("a name that starts with a digit stands in brackets and quotes, as in \"$['1st']\", and an index in brackets alone, as in \"$[1]\"")
            }
            _ => self.expected("a name or \"*\"; other names stand in brackets and quotes, as in \"$['a-b']\""),
        }
    }

    /// Reads selectors up to and with the "]".
    fn bracketed(&mut self) -> Parsed<Vec<Selector>> {
        let mut selectors = Vec::new();
        loop {
            self.space();
            let selector = self.selector()?;
            selectors.push(selector);
            self.space();
            if self.take("]") {
                return Ok(selectors);
            }
            if !self.take(",") {
                return match self.peek() {
                    Some('=') => self.wrong("to compare values write \"==\""),
                    _ => self.expected("\",\" or \"]\""),
                };
            }
        }
    }

    fn selector(&mut self) -> Parsed<Selector> {
        match self.peek() {
            Some('*') => {
                self.take("*");
                Ok(Selector::All)
            }
            Some('\'' | '"') => self.string().map(Selector::Name),
            Some('?') => {
                self.take("?");
                self.nested(Self::test).map(Selector::Filter)
            }
            Some(c) if c == ':' || c == '-' || c.is_ascii_digit() => self.numbers(),
            Some('(') => self.wrong("there are no scripts: count from the end with a negative index, as in \"$[-1]\", and filter with \"?\""),
            Some('@' | '$') => self.wrong("a filter starts with \"?\", as in \"$[?@.price < 10]\""),
            Some(c) if is_name_start(c) => self.wrong("a name in brackets stands in quotes, as in \"$['name']\""),
            _ => self.expected("a name in quotes, an index, a slice, \"*\" or a filter"),
        }
    }

    /// Reads an index, or a slice such as "1:5:2".
    fn numbers(&mut self) -> Parsed<Selector> {
        let start = self.integer()?;
        let before = self.at;
        self.space();
        if !self.take(":") {
            self.at = before;
            return match start {
                Some(index) => Ok(Selector::Index(index)),
                None => self.expected("an index"),
            };
        }
        self.space();
        let end = self.integer()?;
        let before = self.at;
        self.space();
        let mut step = None;
        if self.take(":") {
            self.space();
            step = self.integer()?;
        } else {
            self.at = before;
        }
        Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let number = &rest[..sign + digits];
        if number.is_empty() {
            return Ok(None);
        }
        if number == "-0" || digits == 0 || digits > 1 && rest[sign..].starts_with('0') {
            return self.wrong(&format!("{} is no index: write digits without zeros in front", quote(number)));
        }
        match number.parse() {
            Ok(index) if (-MAX_INDEX..=MAX_INDEX).contains(&index) => {
                self.at += number.len();
                Ok(Some(index))
            }
            _ => self.wrong("the index is too large"),
        }
    }

    /// Reads a string in quotes of either kind.
    pub fn string(&mut self) -> Parsed<String> {
        let mut text = String::new();
        let Some(mark) = self.next() else { return self.expected("a string") };
        loop {
            let before = self.at;
            match self.next() {
                Some(c) if c == mark => return Ok(text),
                Some('\\') => match self.next() {
                    Some('b') => text.push('\u{8}'),
                    Some('f') => text.push('\u{c}'),
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some(c) if c == mark || c == '/' || c == '\\' => text.push(c),
                    Some('u') => text.push(self.unicode(before)?),
                    _ => {
                        self.at = before;
                        return self.wrong("there is no such escape: a backslash itself is written twice");
                    }
                },
                Some(c) if c >= ' ' => text.push(c),
                Some(_) => {
                    self.at = before;
                    return self.wrong("a control character has to be escaped, a line's end as \\n");
                }
                None => return self.wrong(&format!("the string has no {mark} at its end")),
            }
        }
    }

    /// Reads the rest of a \u escape, and of a second one where two are a pair.
    fn unicode(&mut self, start: usize) -> Parsed<char> {
        let units = [self.unit(), if self.rest().starts_with("\\u") { None } else { Some(0) }];
        let found = match units {
            [Some(unit @ 0xd800..=0xdbff), None] => {
                self.at += 2;
                match self.unit() {
                    Some(low @ 0xdc00..=0xdfff) => char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)),
                    _ => None,
                }
            }
            [Some(unit), _] => char::from_u32(unit),
            _ => None,
        };
        match found {
            Some(c) => Ok(c),
            None => {
                self.at = start;
                self.wrong("\\u stands before four hex digits, and before a second one for a character of two halves")
            }
        }
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        let unit = digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())??;
        self.at += 4;
        Some(unit)
    }

    /// Reads something within a filter.
    pub fn nested<T>(&mut self, inner: fn(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            return self.too_deep(format!("filters and parentheses nest more than {MAX_NESTING} deep"));
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub fn take(&mut self, token: &str) -> bool {
        let taken = self.rest().starts_with(token);
        if taken {
            self.at += token.len();
        }
        taken
    }

    pub fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
    }

    pub fn expected<T>(&self, what: &str) -> Parsed<T> {
        match self.peek() {
            None => self.wrong(&format!("expected {what}, but the query ends")),
            Some(c) => self.wrong(&format!("expected {what}, found {}", quote(&c.to_string()))),
        }
    }

    pub fn wrong<T>(&self, what: &str) -> Parsed<T> {
        Err(Fault { code: "syntax", what: what.to_string() })
    }

    pub fn too_much<T>(&self, what: &str) -> Parsed<T> {
        Err(Fault { code: "too_expensive", what: what.to_string() })
    }

    fn too_deep<T>(&self, what: String) -> Parsed<T> {
        Err(Fault { code: "too_deep", what: what + ": simplify it" })
    }
}

/// White space as JSON has it.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}
