use serde_json::{Value, json};

use crate::MODULE;

/// Computes an expression, or returns the error as clients see it.
fn evaluate(expression: &str, variables: Value) -> Result<Value, Value> {
    let arguments = json!({ "expression": expression, "variables": variables });
    toolsrv::testing::call(&MODULE, "evaluate", &arguments.to_string())
        .map_err(|e| e.to_json().parse().unwrap_or_default())
}

#[test]
fn examples() {
    toolsrv::testing::examples(&MODULE);
}

#[test]
fn values() {
    let tests = [
        ("a number", "42", json!(42)),
        ("a fraction", ".5 + 1.", json!(1.5)),
        ("powers of ten", "1.5e3 + 2E-1", json!(1500.2)),
        ("e is a name after a number's end", "2*e - 2*e", json!(0)),
        ("precedence", "1 + 2 * 3 - 4 / 2", json!(5)),
        ("from left to right", "100 - 10 - 1", json!(89)),
        ("division from left to right", "100 / 10 / 2", json!(5)),
        ("powers from right to left", "2^3^2", json!(512)),
        ("Python's power", "2**10", json!(1024)),
        ("a sign binds less than a power", "-2^2", json!(-4)),
        ("a sign in an exponent", "2^-1", json!(0.5)),
        ("signs", "--+-1", json!(-1)),
        ("parentheses", "((1 + 2)) * (3)", json!(9)),
        ("remainder with the sign of the divisor", "-7 % 3", json!(2)),
        ("remainder of a negative divisor", "7 % -3", json!(-2)),
        ("factorial", "3!! / 5!", json!(6)),
        ("binary fractions", "0.1 * 3", json!(0.3)),
        ("no negative zero", "0 * -1", json!(0)),
        ("large and exact", "2^53 - 1", json!(9_007_199_254_740_991_i64)),
        ("large", "10^300 * 10", json!(1e301)),
        ("small", "1 / 10^300", json!(1e-300)),
        ("typographic signs", "6 × 7 ÷ 2 − 1 · 1", json!(20)),
        ("white space", "\n1\t+\u{a0}1 ", json!(2)),
        ("pi", "round(π * 100) / 100 - round(pi, 2)", json!(0)),
        ("rounding of halves", "round(2.675, 2)", json!(2.68)),
        ("rounding below 0", "round(-2.5)", json!(-3)),
        ("rounding to hundreds", "round(1250, -2)", json!(1300)),
        ("rounding of what is large", "round(1e300, 15)", json!(1e300)),
        ("logarithms", "log(1000) + log(8, 2) + log2(8) + ln(e)", json!(10)),
        ("roots", "sqrt(16) + cbrt(27) + root(4, 16) + root(3, -8)", json!(7)),
        ("many arguments", "max(1, 5, 3) + min(4, 2) + sum(1, 2, 3) + mean(1, 2)", json!(14.5)),
        ("whole numbers", "gcd(12, 18) + lcm(4, 6) + choose(5, 2)", json!(28)),
        ("trigonometry", "sin(rad(30)) + deg(atan2(1, 1)) + cos(0)", json!(46.5)),
        ("tangents", "hypot(3, 4) + tanh(0) + abs(-1) + sign(-9)", json!(5)),
    ];
    for (name, expression, want) in tests {
        assert_eq!(evaluate(expression, json!({})), Ok(want), "{name}: {expression}");
    }
}

#[test]
fn variables() {
    let variables = json!({"x": 3, "größe": 1e-3, "e": 10, "_a1": 1});
    assert_eq!(evaluate("x^2 + größe * 1000 + e + _a1", variables), Ok(json!(21)));
    for name in ["", "1x", "a b", "a-b", "x\u{0}"] {
        let error = evaluate("1", json!({ name: 1 })).expect_err(name);
        assert_eq!(error["code"], "bad_name", "{name:?}: {error}");
    }
}

#[test]
fn digits() {
    for (digits, want) in [(1, json!(3000)), (4, json!(3142)), (5, json!(3141.6)), (16, json!(3_141.592_653_589_793))] {
        let arguments = json!({"expression": "1000 * pi", "digits": digits});
        let got = toolsrv::testing::call(&MODULE, "evaluate", &arguments.to_string());
        assert_eq!(got, Ok(want), "{digits} digits");
    }
}

#[test]
fn mistakes() {
    let tests = [
        (
            "nothing",
            "",
            "syntax",
            "At character 1 of the expression: expected a number, a name or \"(\", but the expression ends.",
        ),
        ("half a sum", "1 +", "syntax", "At character 4 of the expression: expected a number"),
        (
            "two operators",
            "2 * / 3",
            "syntax",
            "At character 5 of the expression: expected a number, a name or \"(\", found \"/\".",
        ),
        ("not closed", "(1 + 2", "syntax", "expected \")\", found the end"),
        ("not opened", "1)", "syntax", "At character 2 of the expression: this \")\" has no \"(\" before it."),
        ("no operator", "2x", "syntax", "expected an operator before \"x\"; write 2*x for 2x"),
        ("thousands", "1,000", "syntax", "write 1000 for 1,000"),
        ("comparison", "1 < 2", "syntax", "no assignments or comparisons"),
        ("a foreign character", "1 € 2", "syntax", "expected an operator or the end, found \"€\""),
        (
            "characters, not bytes",
            "größe",
            "syntax",
            "At character 1 of the expression: the name \"größe\" is not known: pass its value in \"variables\".",
        ),
        ("a control character", "1 + \u{0}", "syntax", "found \"\\0\""),
        ("two points", "1.2.3", "syntax", "\"1.2.3\" is not a number"),
        ("a point alone", ".", "syntax", "\".\" is not a number"),
        ("no such function", "sine(1)", "syntax", "there is no function \"sine\"; there are abs, sign, sqrt"),
        (
            "a function's name alone",
            "sqrt",
            "syntax",
            "sqrt is a function: write its arguments in parentheses after it",
        ),
        ("no arguments", "sqrt()", "syntax", "At character 1 of the expression: sqrt takes 1 argument, not 0."),
        ("too many arguments", "log(1, 2, 3)", "syntax", "log takes 1 or 2 arguments, not 3"),
        ("too few arguments", "atan2(1)", "syntax", "atan2 takes 2 arguments, not 1"),
        ("division by zero", "1 / (2 - 2)", "division_by_zero", "1.0 is divided by 0"),
        ("remainder of zero", "1 % 0", "division_by_zero", ""),
        ("power of zero", "0 ^ -1", "division_by_zero", ""),
        ("root of a negative number", "sqrt(-1)", "undefined", "sqrt(-1.0) is not defined in the real numbers."),
        ("power of a negative number", "(-8)^(1/3)", "undefined", ""),
        ("logarithm of nothing", "ln(0)", "undefined", ""),
        ("logarithm to base 1", "log(5, 1)", "undefined", ""),
        ("half a factorial", "0.5!", "undefined", "0.5! is not defined"),
        ("an arc", "acos(2)", "undefined", ""),
        ("parts of what is no whole number", "gcd(1.5, 2)", "undefined", ""),
        ("a large factorial", "171!", "overflow", "171.0! is beyond the largest number"),
        ("a large power", "10 ^ 309", "overflow", "10.0 ^ 309.0 is beyond"),
        ("a large product", "1e308 * 10", "overflow", "1e308 * 10.0 is beyond"),
        ("a large number", "1e309", "overflow", "1e309 is beyond"),
        ("a large sum of arguments", "sum(1e308, 1e308)", "overflow", ""),
    ];
    for (name, expression, code, message) in tests {
        let error = evaluate(expression, json!({})).expect_err(name);
        assert_eq!(error["code"], code, "{name}: {error}");
        let got = error["message"].as_str().unwrap_or_default();
        assert!(got.contains(message), "{name}: got {got:?}, want it to contain {message:?}");
    }
}

#[test]
fn hostile() {
    let deep = |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(2000), close.repeat(2000));
    let tests = [
        ("parentheses", deep("(", "1", ")"), "too_deep"),
        ("open parentheses", deep("(", "", ""), "too_deep"),
        ("functions", deep("abs(", "1", ")"), "too_deep"),
        ("powers", deep("1^", "1", ""), "too_deep"),
        ("a long name", "x".repeat(10_000), "syntax"),
        ("a long function", format!("{}(1)", "x".repeat(9000)), "syntax"),
        ("a long number", "9".repeat(10_000), "overflow"),
        ("many factorials", format!("3{}", "!".repeat(9000)), "overflow"),
        ("many choices", "choose(9e15, 4.5e15)".to_string(), "overflow"),
        ("many arguments", format!("abs({}1)", "1,".repeat(4000)), "syntax"),
    ];
    for (name, expression, code) in tests {
        let error = evaluate(&expression, json!({})).expect_err(name);
        assert_eq!(error["code"], code, "{name}: {error}");
        assert!(error.to_string().len() < 1000, "{name}: the message has {} bytes", error.to_string().len());
    }
    assert_eq!(evaluate(&format!("{}1", "-".repeat(9999)), json!({})), Ok(json!(-1)));
    assert_eq!(evaluate(&format!("{}1", "1+".repeat(4999)), json!({})), Ok(json!(5000)));
    assert_eq!(evaluate(&format!("{}1{}", "(".repeat(100), ")".repeat(100)), json!({})), Ok(json!(1)));
}

/// Whatever is typed, it ends in a value or a sentence.
#[test]
fn anything() {
    let parts = [
        "1", "0.5", ".", "e", "9e99", "x", "π", " ", "+", "-", "*", "/", "%", "^", "!", "(", ")", ",", "€", "sqrt",
        "max(", "log(",
    ];
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut expression = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            expression.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        if let Err(error) = evaluate(&expression, json!({"x": -2})) {
            assert!(error["code"].is_string(), "{expression}: {error}");
        }
    }
}
