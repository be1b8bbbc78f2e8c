//! Runs a JSONPath over a document, value by value and without lists in between.

use std::borrow::Cow;

use regex_lite::Regex;
use serde_json::{Number, Value};

use crate::equal::equal;
use crate::jsonpath::query::{Comparison, Operand, Pattern, Query, Segment, Selector, Test, compile};

/// How many values a query may look at.
const MAX_STEPS: usize = 10_000_000;

/// What compiling a pattern counts for.
const COMPILATION: usize = 10_000;

/// Means that a query looks at too much.
pub struct TooExpensive;

type Step<T> = Result<T, TooExpensive>;

/// What is called with each value that is found; it returns whether to go on.
type Visit<'v, 'a> = &'v mut dyn FnMut(&'a Value) -> bool;

pub struct Finder<'a> {
    document: &'a Value,
    left: usize,
    last: Option<(String, bool, Option<Regex>)>, // the last pattern that was compiled
}

impl<'a> Finder<'a> {
    pub fn new(document: &'a Value) -> Self {
        Self { document, left: MAX_STEPS, last: None }
    }

    /// Visits what a query finds from a place, in the standard's order, and returns whether to go on.
    pub fn find(&mut self, query: &Query, here: &'a Value, visit: Visit<'_, 'a>) -> Step<bool> {
        let start = if query.absolute { self.document } else { here };
        self.walk(start, &query.segments, visit)
    }

    fn walk(&mut self, at: &'a Value, segments: &[Segment], visit: Visit<'_, 'a>) -> Step<bool> {
        match segments.split_first() {
            None => Ok(visit(at)),
            Some((segment, rest)) if segment.descend => self.descend(at, segment, rest, visit),
            Some((segment, rest)) => self.apply(at, segment, rest, visit),
        }
    }

    /// Applies the selectors of a segment to a value, and then to all that is below it.
    fn descend(&mut self, at: &'a Value, segment: &Segment, rest: &[Segment], visit: Visit<'_, 'a>) -> Step<bool> {
        if !self.apply(at, segment, rest, visit)? {
            return Ok(false);
        }
        for child in children(at) {
            self.charge(1)?;
            if !self.descend(child, segment, rest, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn apply(&mut self, at: &'a Value, segment: &Segment, rest: &[Segment], visit: Visit<'_, 'a>) -> Step<bool> {
        for selector in &segment.selectors {
            if !self.select(at, selector, rest, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn select(&mut self, at: &'a Value, selector: &Selector, rest: &[Segment], visit: Visit<'_, 'a>) -> Step<bool> {
        self.charge(1)?;
        let one = match (selector, at) {
            (Selector::Name(name), Value::Object(members)) => members.get(name),
            (Selector::Index(index), Value::Array(items)) => position(*index, items.len()).and_then(|i| items.get(i)),
            (Selector::Slice { start, end, step }, Value::Array(items)) => {
                for i in slice(*start, *end, *step, items.len()) {
                    self.charge(1)?;
                    if !self.walk(&items[i], rest, visit)? {
                        return Ok(false);
                    }
                }
                None
            }
            (Selector::All, _) => {
                for child in children(at) {
                    self.charge(1)?;
                    if !self.walk(child, rest, visit)? {
                        return Ok(false);
                    }
                }
                None
            }
            (Selector::Filter(test), _) => {
                for child in children(at) {
                    self.charge(1)?;
                    if self.holds(test, child)? && !self.walk(child, rest, visit)? {
                        return Ok(false);
                    }
                }
                None
            }
            _ => None,
        };
        one.map_or(Ok(true), |value| self.walk(value, rest, visit))
    }

    fn holds(&mut self, test: &Test, here: &'a Value) -> Step<bool> {
        match test {
            Test::Any(tests) => {
                for test in tests {
                    if self.holds(test, here)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::All(tests) => {
                for test in tests {
                    if !self.holds(test, here)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Not(test) => Ok(!self.holds(test, here)?),
            Test::Exists(query) => Ok(!self.find(query, here, &mut |_| false)?),
            Test::Compare(left, comparison, right) => {
                let (left, right) = (self.value(left, here)?, self.value(right, here)?);
                Ok(compare(left.as_deref(), *comparison, right.as_deref()))
            }
            Test::Matches { whole, text, pattern } => {
                let text = self.value(text, here)?;
                let Some(Value::String(text)) = text.as_deref() else { return Ok(false) };
                self.charge(text.len() / 4)?;
                match pattern {
                    Pattern::Compiled(regex) => Ok(regex.as_ref().is_some_and(|regex| regex.is_match(text))),
                    Pattern::Computed(operand) => {
                        let pattern = self.value(operand, here)?;
                        let Some(Value::String(pattern)) = pattern.as_deref() else { return Ok(false) };
                        Ok(self.computed(pattern, *whole)?.is_some_and(|regex| regex.is_match(text)))
                    }
                }
            }
        }
    }

    /// Compiles a pattern that is no part of the query, where it is not the same as the last one.
    fn computed(&mut self, pattern: &str, whole: bool) -> Step<Option<Regex>> {
        match &self.last {
            Some((last, as_whole, regex)) if last == pattern && *as_whole == whole => Ok(regex.clone()),
            _ => {
                self.charge(COMPILATION)?;
                let regex = compile(pattern, whole).map_err(|_| TooExpensive)?;
                self.last = Some((pattern.to_string(), whole, regex.clone()));
                Ok(regex)
            }
        }
    }

    fn value<'q>(&mut self, operand: &'q Operand, here: &'a Value) -> Step<Option<Cow<'q, Value>>>
    where
        'a: 'q,
    {
        let mut found = None;
        let mut count = 0usize;
        Ok(match operand {
            Operand::Literal(value) => Some(Cow::Borrowed(value)),
            Operand::Query(query) | Operand::Value(query) => {
                self.find(query, here, &mut |value| {
                    count += 1;
                    found = Some(Cow::Borrowed(value));
                    count < 2
                })?;
                found.filter(|_| count == 1)
            }
            Operand::Count(query) => {
                self.find(query, here, &mut |_| {
                    count += 1;
                    true
                })?;
                Some(Cow::Owned(count.into()))
            }
            Operand::Length(operand) => match self.value(operand, here)?.as_deref() {
                Some(Value::String(text)) => Some(Cow::Owned(text.chars().count().into())),
                Some(Value::Array(items)) => Some(Cow::Owned(items.len().into())),
                Some(Value::Object(members)) => Some(Cow::Owned(members.len().into())),
                _ => None,
            },
        })
    }

    fn charge(&mut self, steps: usize) -> Step<()> {
        self.left = self.left.checked_sub(steps).ok_or(TooExpensive)?;
        Ok(())
    }
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let (items, members) = match value {
        Value::Array(items) => (items.as_slice(), None),
        Value::Object(members) => ([].as_slice(), Some(members.values())),
        _ => ([].as_slice(), None),
    };
    items.iter().chain(members.into_iter().flatten())
}

/// Returns where an index points to, from the end where it is negative.
fn position(index: i64, len: usize) -> Option<usize> {
    let len = len as i64;
    usize::try_from(if index < 0 { index + len } else { index }).ok().filter(|i| (*i as i64) < len)
}

/// Returns the indexes of a slice, as RFC 9535, section 2.3.4.2, computes them.
fn slice(start: Option<i64>, end: Option<i64>, step: i64, len: usize) -> Box<dyn Iterator<Item = usize>> {
    let len = len as i64;
    let normal = |i: i64| if i < 0 { i + len } else { i };
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    if step > 0 {
        let from = normal(start.unwrap_or(0)).clamp(0, len);
        let to = normal(end.unwrap_or(len)).clamp(0, len);
        return Box::new((from as usize..to as usize).step_by(stride));
    }
    if step == 0 {
        return Box::new(std::iter::empty());
    }
    let from = start.map_or(len - 1, normal).clamp(-1, len - 1);
    let to = end.map_or(-1, normal).clamp(-1, len - 1);
    Box::new(((to + 1) as usize..(from + 1) as usize).rev().step_by(stride))
}

fn compare(left: Option<&Value>, comparison: Comparison, right: Option<&Value>) -> bool {
    let same = || match (left, right) {
        (None, None) => true,
        (Some(left), Some(right)) => equal(left, right),
        _ => false,
    };
    match comparison {
        Comparison::Equal => same(),
        Comparison::NotEqual => !same(),
        Comparison::Less => less(left, right),
        Comparison::AtMost => less(left, right) || same(),
        Comparison::Greater => less(right, left),
        Comparison::AtLeast => less(right, left) || same(),
    }
}

/// Only numbers and strings have an order.
fn less(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => less_number(left, right),
        (Some(Value::String(left)), Some(Value::String(right))) => left < right,
        _ => false,
    }
}

fn less_number(left: &Number, right: &Number) -> bool {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64().zip(right.as_f64()).is_some_and(|(left, right)| left < right),
    }
}
