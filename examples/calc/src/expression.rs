//! Reads and computes an expression in one pass from left to right.

use std::collections::BTreeMap;

use toolsrv::Error;

use crate::function::{self, CONSTANTS, FUNCTIONS};

/// How deep parentheses, powers and signs may nest: each level takes stack.
const MAX_DEPTH: usize = 100;

/// Computes an expression; names stand for variables, constants and functions.
pub fn evaluate(text: &str, variables: &BTreeMap<String, f64>) -> Result<f64, Error> {
    let mut parser = Parser { text, at: 0, depth: 0, variables };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some(')') => Err(parser.wrong("this \")\" has no \"(\" before it")),
        Some(',') => {
            Err(parser.wrong("a comma may only separate a function's arguments; write 1000 for 1,000 and 0.5 for 0,5"))
        }
        Some(c) if c == '(' || is_name(c) || c.is_ascii_digit() => {
            Err(parser.wrong(&format!("expected an operator before {}; write 2*x for 2x", parser.found())))
        }
        Some('=' | '<' | '>') => {
            Err(parser.wrong("there are no assignments or comparisons; pass values in \"variables\""))
        }
        Some(_) => Err(parser.wrong(&format!("expected an operator or the end, found {}", parser.found()))),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize, // always between two characters
    depth: usize,
    variables: &'a BTreeMap<String, f64>,
}

impl<'a> Parser<'a> {
    /// sum = product { ("+" | "-") product }
    fn sum(&mut self) -> Result<f64, Error> {
        let mut left = self.product()?;
        loop {
            if self.take("+") {
                let right = self.product()?;
                left = finite(left + right, || format!("{left:?} + {right:?}"))?;
            } else if self.take("-") || self.take("−") {
                let right = self.product()?;
                left = finite(left - right, || format!("{left:?} - {right:?}"))?;
            } else {
                return Ok(left);
            }
        }
    }

    /// product = signed { ("*" | "/" | "%") signed }
    fn product(&mut self) -> Result<f64, Error> {
        let mut left = self.signed()?;
        loop {
            if self.take("*") || self.take("×") || self.take("·") {
                let right = self.signed()?;
                left = finite(left * right, || format!("{left:?} * {right:?}"))?;
            } else if self.take("/") || self.take("÷") {
                let right = self.signed()?;
                not_zero(left, right)?;
                left = finite(left / right, || format!("{left:?} / {right:?}"))?;
            } else if self.take("%") {
                let right = self.signed()?;
                not_zero(left, right)?;
                left = finite(function::modulo(left, right), || format!("{left:?} % {right:?}"))?;
            } else {
                return Ok(left);
            }
        }
    }

    /// signed = { "+" | "-" } power, so that -2^2 is -4
    fn signed(&mut self) -> Result<f64, Error> {
        let mut negative = false;
        loop {
            if self.take("-") || self.take("−") {
                negative = !negative;
            } else if !self.take("+") {
                let value = self.power()?;
                return Ok(if negative { -value } else { value });
            }
        }
    }

    /// power = atom { "!" } [ ("^" | "**") signed ], so that 2^3^2 is 2^9
    fn power(&mut self) -> Result<f64, Error> {
        let mut base = self.atom()?;
        while self.take("!") {
            let n = base;
            base = finite(function::factorial(n), || format!("{n:?}!"))?;
        }
        if !self.take("^") && !self.take("**") {
            return Ok(base);
        }
        let exponent = self.nested(Self::signed)?;
        if base == 0.0 && exponent < 0.0 {
            not_zero(1.0, 0.0)?;
        }
        finite(base.powf(exponent), || format!("{base:?} ^ {exponent:?}"))
    }

    /// atom = number | name | name "(" sum { "," sum } ")" | "(" sum ")"
    fn atom(&mut self) -> Result<f64, Error> {
        match self.peek() {
            None => Err(self.wrong("expected a number, a name or \"(\", but the expression ends")),
            Some('(') => {
                self.take("(");
                let value = self.nested(Self::sum)?;
                self.close()?;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if is_name(c) => self.named(),
            Some(_) => Err(self.wrong(&format!("expected a number, a name or \"(\", found {}", self.found()))),
        }
    }

    fn number(&mut self) -> Result<f64, Error> {
        let rest = &self.text[self.at..];
        let digits = |from: usize| from + rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        let mut end = digits(0);
        if rest[end..].starts_with('.') {
            end = digits(end + 1);
        }
        let mantissa = end;
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            if digits(end + 1 + sign) > end + 1 + sign {
                end = digits(end + 1 + sign);
            }
        }
        let number = &rest[..end];
        if rest[end..].starts_with('.') || &rest[..mantissa] == "." {
            return Err(self.wrong(&format!("{} is not a number", self.found())));
        }
        let value = number.parse().map_err(|_| self.wrong(&format!("{number} is not a number")))?;
        self.at += end;
        finite(value, || number.chars().take(40).collect())
    }

    fn named(&mut self) -> Result<f64, Error> {
        let start = self.at;
        let rest = &self.text[start..];
        let name = &rest[..rest.find(|c| !is_name(c) && !c.is_ascii_digit()).unwrap_or(rest.len())];
        self.at += name.len();
        if self.peek() == Some('(') {
            let Some(function) = FUNCTIONS.iter().find(|f| f.name == name) else {
                self.at = start;
                let names: Vec<_> = FUNCTIONS.iter().map(|f| f.name).collect();
                return Err(self.wrong(&format!(
                    "there is no function {}; there are {}",
                    short(name),
                    names.join(", ")
                )));
            };
            self.take("(");
            return self.applied(function, start);
        }
        if let Some(value) = self.variables.get(name) {
            return Ok(*value);
        }
        if let Some((_, value)) = CONSTANTS.iter().find(|(constant, _)| *constant == name) {
            return Ok(*value);
        }
        self.at = start;
        if FUNCTIONS.iter().any(|f| f.name == name) {
            return Err(self.wrong(&format!("{name} is a function: write its arguments in parentheses after it")));
        }
        Err(self.wrong(&format!("the name {} is not known: pass its value in \"variables\"", short(name))))
    }

    /// Reads a function's arguments, up to and with its ")", and applies it.
    fn applied(&mut self, function: &function::Function, start: usize) -> Result<f64, Error> {
        let mut arguments = Vec::new();
        if self.peek() != Some(')') {
            loop {
                arguments.push(self.nested(Self::sum)?);
                if !self.take(",") {
                    break;
                }
            }
        }
        self.close()?;
        let count = arguments.len();
        if count < function.least || count > function.most {
            self.at = start;
            let wanted = match (function.least, function.most) {
                (1, 1) => "1 argument".to_string(),
                (least, usize::MAX) => format!("{least} or more arguments"),
                (least, most) if least == most => format!("{least} arguments"),
                (least, most) => format!("{least} or {most} arguments"),
            };
            return Err(self.wrong(&format!("{} takes {wanted}, not {count}", function.name)));
        }
        finite((function.apply)(&arguments), || {
            let mut list: Vec<_> = arguments.iter().take(4).map(|x| format!("{x:?}")).collect();
            if count > 4 {
                list.push("…".to_string());
            }
            format!("{}({})", function.name, list.join(", "))
        })
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<f64, Error>) -> Result<f64, Error> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong(&format!("it nests more than {MAX_DEPTH} deep; split it")).code("too_deep"));
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.take(")") {
            return Ok(());
        }
        Err(self.wrong(&format!("expected \")\", found {}", self.found())))
    }

    /// Takes an operator; the "*" of a "**" is not one.
    fn take(&mut self, operator: &str) -> bool {
        self.peek();
        let rest = &self.text[self.at..];
        let taken = rest.starts_with(operator) && !(operator == "*" && rest.starts_with("**"));
        if taken {
            self.at += operator.len();
        }
        taken
    }

    /// Returns the next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        rest.trim_start().chars().next()
    }

    fn found(&self) -> String {
        let rest = &self.text[self.at..];
        match rest.chars().next() {
            None => "the end".to_string(),
            Some(c) if is_name(c) || c.is_ascii_digit() || c == '.' => {
                let end = rest.find(|c| !is_name(c) && !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
                short(&rest[..end])
            }
            Some(c) => format!("\"{}\"", c.escape_debug()),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        let position = self.text[..self.at].chars().count() + 1;
        Error::new(format!("At character {position} of the expression: {what}."))
            .code("syntax")
            .data(serde_json::json!({ "position": position }))
    }
}

/// Whether a name may start with it.
pub fn is_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn short(name: &str) -> String {
    let mut start: String = name.chars().take(40).collect();
    if start.len() < name.len() {
        start.push('…');
    }
    format!("\"{start}\"")
}

fn not_zero(dividend: f64, divisor: f64) -> Result<(), Error> {
    if divisor == 0.0 {
        return Err(Error::new(format!("{dividend:?} is divided by 0: there is no result.")).code("division_by_zero"));
    }
    Ok(())
}

/// Returns a value that JSON can hold, or an error that says what was computed.
fn finite(value: f64, what: impl Fn() -> String) -> Result<f64, Error> {
    if value.is_nan() {
        return Err(Error::new(format!("{} is not defined in the real numbers.", what())).code("undefined"));
    }
    if value.is_infinite() {
        return Err(Error::new(format!("{} is beyond the largest number, about 1.8e308.", what())).code("overflow"));
    }
    Ok(value)
}
