//! The functions and constants that an expression can name.

/// A function of an expression, with how many arguments it takes.
pub struct Function {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub apply: fn(&[f64]) -> f64,
}

/// Any number of arguments.
const ANY: usize = usize::MAX;

const fn function(name: &'static str, least: usize, most: usize, apply: fn(&[f64]) -> f64) -> Function {
    Function { name, least, most, apply }
}

pub const CONSTANTS: [(&str, f64); 4] = [
    ("pi", std::f64::consts::PI),
    ("π", std::f64::consts::PI),
    ("tau", std::f64::consts::TAU),
    ("e", std::f64::consts::E),
];

/// Where a function is not defined it returns NaN.
pub const FUNCTIONS: [Function; 37] = [
    function("abs", 1, 1, |x| x[0].abs()),
    function("sign", 1, 1, |x| if x[0] == 0.0 { 0.0 } else { x[0].signum() }),
    function("sqrt", 1, 1, |x| x[0].sqrt()),
    function("cbrt", 1, 1, |x| x[0].cbrt()),
    function("root", 2, 2, |x| root(x[0], x[1])),
    function("pow", 2, 2, |x| x[0].powf(x[1])),
    function("exp", 1, 1, |x| x[0].exp()),
    function("ln", 1, 1, |x| positive(x[0]).ln()),
    function("log", 1, 2, |x| match x {
        [x] => positive(*x).log10(),
        [x, base] if *base != 1.0 => positive(*x).ln() / positive(*base).ln(),
        _ => f64::NAN,
    }),
    function("log2", 1, 1, |x| positive(x[0]).log2()),
    function("log10", 1, 1, |x| positive(x[0]).log10()),
    function("floor", 1, 1, |x| x[0].floor()),
    function("ceil", 1, 1, |x| x[0].ceil()),
    function("trunc", 1, 1, |x| x[0].trunc()),
    function("round", 1, 2, |x| round(x[0], x.get(1).copied().unwrap_or(0.0))),
    function("mod", 2, 2, |x| modulo(x[0], x[1])),
    function("min", 1, ANY, |x| x.iter().copied().fold(f64::INFINITY, f64::min)),
    function("max", 1, ANY, |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    function("sum", 1, ANY, |x| x.iter().sum()),
    function("mean", 1, ANY, |x| x.iter().sum::<f64>() / x.len() as f64),
    function("hypot", 1, ANY, |x| x.iter().copied().fold(0.0, f64::hypot)),
    function("gcd", 1, ANY, |x| x.iter().copied().fold(0.0, gcd)),
    function("lcm", 1, ANY, |x| x.iter().copied().fold(1.0, lcm)),
    function("factorial", 1, 1, |x| factorial(x[0])),
    function("choose", 2, 2, |x| choose(x[0], x[1])),
    function("deg", 1, 1, |x| x[0].to_degrees()),
    function("rad", 1, 1, |x| x[0].to_radians()),
    function("sin", 1, 1, |x| x[0].sin()),
    function("cos", 1, 1, |x| x[0].cos()),
    function("tan", 1, 1, |x| x[0].tan()),
    function("asin", 1, 1, |x| x[0].asin()),
    function("acos", 1, 1, |x| x[0].acos()),
    function("atan", 1, 1, |x| x[0].atan()),
    function("atan2", 2, 2, |x| x[0].atan2(x[1])),
    function("sinh", 1, 1, |x| x[0].sinh()),
    function("cosh", 1, 1, |x| x[0].cosh()),
    function("tanh", 1, 1, |x| x[0].tanh()),
];

/// The largest number up to which all integers are exact: 2^53.
pub const EXACT: f64 = 9_007_199_254_740_992.0;

fn positive(x: f64) -> f64 {
    if x > 0.0 { x } else { f64::NAN }
}

/// A whole number that is exact, or NaN.
fn whole(x: f64) -> f64 {
    if x.fract() == 0.0 && x.abs() <= EXACT { x } else { f64::NAN }
}

/// The remainder with the sign of the divisor, so that it repeats without a break at 0.
pub fn modulo(x: f64, by: f64) -> f64 {
    let rest = x % by;
    if rest != 0.0 && (rest < 0.0) != (by < 0.0) { rest + by } else { rest }
}

/// Half goes away from 0, as people round; 2.675 counts as what was typed, not as the binary number just below.
fn round(x: f64, places: f64) -> f64 {
    if places.fract() != 0.0 || places.abs() > 300.0 {
        return f64::NAN;
    }
    if places > 15.0 || !(x * 10f64.powf(places)).is_finite() {
        return x;
    }
    let power = 10f64.powf(places.abs());
    if places < 0.0 {
        return (x / power).round() * power;
    }
    (super::significant(x * power, 15)).round() / power
}

fn root(degree: f64, x: f64) -> f64 {
    if degree == 0.0 {
        f64::NAN
    } else if x < 0.0 && modulo(degree, 2.0) == 1.0 {
        -(-x).powf(1.0 / degree)
    } else {
        x.powf(1.0 / degree)
    }
}

fn gcd(a: f64, b: f64) -> f64 {
    let (mut a, mut b) = (whole(a).abs(), whole(b).abs());
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    while b != 0.0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        return whole(a) * whole(b);
    }
    whole((a / gcd(a, b) * b).abs())
}

pub fn factorial(n: f64) -> f64 {
    if n < 0.0 || n.fract() != 0.0 {
        return f64::NAN;
    }
    (2..=n.min(171.0) as u32).fold(1.0, |product, k| product * f64::from(k))
}

fn choose(n: f64, k: f64) -> f64 {
    if whole(n).is_nan() || whole(k).is_nan() || n < 0.0 || k < 0.0 {
        return f64::NAN;
    }
    if k > n {
        return 0.0;
    }
    let mut ways = 1.0;
    let mut i = 1.0;
    while i <= k.min(n - k) && f64::is_finite(ways) {
        ways = ways * (n - i + 1.0) / i;
        i += 1.0;
    }
    ways
}
