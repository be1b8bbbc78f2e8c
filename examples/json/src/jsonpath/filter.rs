//! Reads the filters of a JSONPath.

use serde_json::Value;

use crate::jsonpath::parser::{Parsed, Parser};
use crate::jsonpath::query::{Comparison, Operand, Pattern, Query, Test, TooLarge, compile};
use crate::pointer::quote;

/// The operators, those first that others start with.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// What can stand in a filter, before it is known as what it is used.
enum Part {
    Literal(Value),
    Query(Query),
    Value(Operand),
    Test(Test),
}

impl Parser<'_> {
    /// Reads a filter without its "?": tests with "||" between them.
    pub fn test(&mut self) -> Parsed<Test> {
        let mut any = vec![self.conjunction()?];
        while self.operator("||") {
            any.push(self.conjunction()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Test::Any(any) })
    }

    /// Reads tests with "&&" between them.
    fn conjunction(&mut self) -> Parsed<Test> {
        let mut all = vec![self.basic()?];
        while self.operator("&&") {
            all.push(self.basic()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Test::All(all) })
    }

    fn basic(&mut self) -> Parsed<Test> {
        self.space();
        let negated = self.take("!");
        self.space();
        let start = self.at;
        let test = if self.take("(") {
            let test = self.nested(Self::test)?;
            self.close()?;
            test
        } else {
            let part = self.part()?;
            match self.comparison() {
                Some(_) if negated => {
                    return self.wrong("\"!\" stands before parentheses or a query: write !(@.a == 1), or @.a != 1");
                }
                Some(comparison) => {
                    let left = self.operand(part, start)?;
                    self.space();
                    let start = self.at;
                    let right = self.part()?;
                    Test::Compare(left, comparison, self.operand(right, start)?)
                }
                None => match part {
                    Part::Query(query) => Test::Exists(query),
                    Part::Test(test) => test,
                    Part::Literal(_) | Part::Value(_) => return self.expected("a comparison such as \"==\""),
                },
            }
        };
        Ok(if negated { Test::Not(Box::new(test)) } else { test })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        COMPARISONS.iter().find(|(sign, _)| self.operator(sign)).map(|(_, comparison)| *comparison)
    }

    /// Takes an operator with the space before it, or neither.
    fn operator(&mut self, sign: &str) -> bool {
        let before = self.at;
        self.space();
        let taken = self.take(sign);
        if !taken {
            self.at = before;
        }
        taken
    }

    /// Reads a literal, a query or a function's call.
    fn part(&mut self) -> Parsed<Part> {
        match self.peek() {
            Some('@' | '$') => self.inner_query().map(Part::Query),
            Some('\'' | '"') => self.string().map(|text| Part::Literal(text.into())),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number().map(Part::Literal),
            Some(c) if c.is_ascii_lowercase() => {
                let rest = self.rest();
                let end = rest
                    .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
                    .unwrap_or(rest.len());
                let (word, rest) = rest.split_at(end);
                if rest.starts_with('(') {
                    return self.nested(Self::call);
                }
                let literal = match word {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    "null" => Value::Null,
                    _ => {
                        return self.wrong(&format!(
                            "{} stands for nothing here: put text in quotes, and \"@.\" before a member's name",
                            quote(word)
                        ));
                    }
                };
                self.at += end;
                Ok(Part::Literal(literal))
            }
            _ => self.expected("a value, a query such as \"@.name\", a function or \"(\""),
        }
    }

    fn inner_query(&mut self) -> Parsed<Query> {
        let absolute = self.take("$");
        if !absolute && !self.take("@") {
            return self.expected("a query such as \"@.name\"");
        }
        Ok(Query { absolute, segments: self.segments()? })
    }

    fn number(&mut self) -> Parsed<Value> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
        let (text, _) = rest.split_at(end);
        match serde_json::from_str::<Value>(text) {
            Ok(number) => {
                self.at += end;
                Ok(number)
            }
            Err(_) => self.wrong(&format!("{} is no number", quote(text))),
        }
    }

    fn call(&mut self) -> Parsed<Part> {
        let start = self.at;
        let (name, _) = self.rest().split_once('(').unwrap_or_default();
        self.at += name.len() + 1;
        self.space();
        let part = match name {
            "length" => Part::Value(Operand::Length(Box::new(self.value()?))),
            "count" => Part::Value(Operand::Count(self.inner_query()?)),
            "value" => Part::Value(Operand::Value(self.inner_query()?)),
            "match" | "search" => {
                let whole = name == "match";
                let text = self.value()?;
                self.space();
                if !self.take(",") {
                    return self.expected(&format!("\",\" and a pattern: {name} takes two arguments"));
                }
                self.space();
                let pattern = match self.value()? {
                    Operand::Literal(Value::String(pattern)) => match compile(&pattern, whole) {
                        Ok(regex) => Pattern::Compiled(regex),
                        Err(TooLarge) => return self.too_much("the pattern is too large: repeat less within it"),
                    },
                    operand => Pattern::Computed(operand),
                };
                Part::Test(Test::Matches { whole, text, pattern })
            }
            _ => {
                self.at = start;
                return self.wrong(&format!(
                    "there is no function {}; there are length, count, value, match and search",
                    quote(name)
                ));
            }
        };
        self.close()?;
        Ok(part)
    }

    /// Reads an argument that is one value.
    fn value(&mut self) -> Parsed<Operand> {
        let start = self.at;
        let part = self.part()?;
        self.operand(part, start)
    }

    /// Returns a part that began at start as something that has one value at most.
    fn operand(&mut self, part: Part, start: usize) -> Parsed<Operand> {
        let what = match part {
            Part::Literal(value) => return Ok(Operand::Literal(value)),
            Part::Value(operand) => return Ok(operand),
            Part::Query(query) if query.is_singular() => return Ok(Operand::Query(query)),
            Part::Query(_) => "this query can find several values: take one with value(), or count() them",
            Part::Test(_) => "match and search are true or false by themselves, and can't be compared or passed on",
        };
        self.at = start;
        self.wrong(what)
    }

    fn close(&mut self) -> Parsed<()> {
        self.space();
        if self.take(")") { Ok(()) } else { self.expected("\")\"") }
    }
}
