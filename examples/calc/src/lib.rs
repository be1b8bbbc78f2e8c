//! A calculator: one tool, `calc/evaluate`.

mod expression;
mod function;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct Calculation {
    /// What to compute, such as "(1 + vat) * price" or "sqrt(2)^3". There are + - * / % ^ ! and parentheses, the
    /// constants pi, tau and e, and the functions abs, sign, sqrt, cbrt, root(n, x), pow, exp, ln, log(x, base),
    /// log2, log10, floor, ceil, trunc, round(x, places), mod, min, max, sum, mean, hypot, gcd, lcm, factorial,
    /// choose(n, k), deg, rad, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh and tanh. Angles are in radians. A
    /// comma separates arguments, a point starts the decimals.
    #[schemars(length(min = 1, max = 10_000))]
    expression: String,
    /// The values of names in the expression.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 1000))]
    variables: BTreeMap<String, f64>,
    /// How many significant digits the result has. Numbers are computed with about 16; 15 hide what binary fractions
    /// can't express.
    #[serde(default = "fifteen")]
    #[schemars(range(min = 1, max = 17))]
    digits: u32,
}

fn fifteen() -> u32 {
    15
}

/// Compute an arithmetic expression, with values for the names in it. Use it instead of estimating, wherever the
/// result of a calculation matters.
#[tool(
    title = "Evaluate an expression",
    annotations(read_only = true, open_world = false),
    example(arguments = r#"{"expression": "0.1 + 0.2"}"#, result = "0.3"),
    example(arguments = r#"{"expression": "2^3^2 - -3!"}"#, result = "518"),
    example(
        arguments = r#"{"expression": "round(price * (1 + vat), 2)", "variables": {"price": 19.99, "vat": 0.19}}"#,
        result = "23.79"
    ),
    example(arguments = r#"{"expression": "10 / 3", "digits": 4}"#, result = "3.333")
)]
fn evaluate(calculation: Calculation) -> Result<Number, Error> {
    let Calculation { expression, variables, digits } = calculation;
    if let Some(name) = variables.keys().find(|name| !is_name(name)) {
        return Err(Error::new(format!(
            "The variable {name:?} is not a valid name: a name has letters, digits and \"_\", and does not start with a digit."
        ))
        .code("bad_name"));
    }
    number(expression::evaluate(&expression, &variables)?, digits)
}

toolsrv::export! { namespace: "calc", tools: [evaluate] }

fn is_name(name: &str) -> bool {
    name.starts_with(expression::is_name) && name.chars().all(|c| expression::is_name(c) || c.is_ascii_digit())
}

/// Rounds a result to so many significant digits. Whole numbers stay as they are while they are exact, and without a
/// ".0".
fn number(value: f64, digits: u32) -> Result<Number, Error> {
    let rounded = if value.fract() == 0.0 && digits >= 15 && value.abs() <= function::EXACT {
        value
    } else {
        significant(value, digits)
    };
    if rounded.fract() == 0.0 && rounded.abs() <= function::EXACT {
        return Ok(Number::from(rounded as i64));
    }
    Number::from_f64(rounded)
        .ok_or_else(|| Error::new("The result is beyond the largest number, about 1.8e308.").code("overflow"))
}

/// Rounds to so many significant digits, at least one.
fn significant(value: f64, digits: u32) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1) as usize).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests;
