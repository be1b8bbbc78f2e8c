//! Guests that compute: 0 hashes (SHA-256), 1 sorts, 2 reads and writes JSON, 3 multiplies matrices. Each takes some
//! tens of milliseconds and answers with a checksum, so that nothing can be optimised away and results can be compared.

mod abi;

#[unsafe(no_mangle)]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 {
    let sum = match tool {
        0 => hash(),
        1 => sort(),
        2 => json(),
        3 => matrix(),
        _ => return 2,
    };
    abi::output(&sum.to_string());
    0
}

/// The xorshift generator: the same numbers in every run.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

fn hash() -> u32 {
    let mut numbers = Numbers(1);
    let data: Vec<u8> = (0..64 << 10).map(|_| numbers.next() as u8).collect();
    let mut state = [1u32; 8];
    for _ in 0..64 {
        for block in data.chunks_exact(64) {
            compress(&mut state, block);
        }
    }
    state.iter().fold(0, |sum, word| sum ^ word)
}

/// One round of SHA-256's compression, with constants made as they are needed in place of the standard's.
fn compress(state: &mut [u32; 8], block: &[u8]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for i in 16..64 {
        let a = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let b = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(a).wrapping_add(w[i - 7]).wrapping_add(b);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (i, word) in w.iter().enumerate() {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let t1 = h.wrapping_add(s1).wrapping_add((e & f) ^ (!e & g)).wrapping_add(*word)
            .wrapping_add((i as u32).wrapping_mul(0x9e3779b9));
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
    }
    for (sum, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(word);
    }
}

fn sort() -> u32 {
    let mut numbers = Numbers(2);
    let mut list: Vec<u32> = (0..400_000).map(|_| numbers.next()).collect();
    list.sort_unstable();
    list.iter().step_by(997).fold(0, |sum: u32, n| sum.rotate_left(1) ^ n)
}

fn json() -> u32 {
    let mut numbers = Numbers(3);
    let mut text = String::from("[");
    for i in 0..2_000 {
        if i > 0 {
            text.push(',');
        }
        text += &format!(r#"{{"id":{i},"name":"item \"{}\"","tags":["a","b"],"price":{}}}"#, numbers.next(), numbers.next() as f64 / 256.0);
    }
    text.push(']');
    let mut sum = 0u32;
    for _ in 0..6 {
        let mut rest = text.as_bytes();
        let value = parse(&mut rest);
        let mut written = String::new();
        write(&value, &mut written);
        sum = written.bytes().fold(sum, |sum, b| sum.wrapping_mul(31).wrapping_add(b as u32));
    }
    sum
}

enum Value {
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// Reads one value of JSON that is known to be well-formed and without blanks.
fn parse(rest: &mut &[u8]) -> Value {
    match rest[0] {
        b'{' => {
            let mut members = Vec::new();
            while take(rest) != b'}' {
                let name = parse_text(rest);
                take(rest); // the colon
                members.push((name, parse(rest)));
            }
            Value::Object(members)
        }
        b'[' => {
            let mut items = Vec::new();
            while take(rest) != b']' {
                items.push(parse(rest));
            }
            Value::List(items)
        }
        b'"' => Value::Text(parse_text(rest)),
        _ => {
            let end = rest.iter().position(|b| matches!(b, b',' | b']' | b'}')).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            *rest = after;
            Value::Number(std::str::from_utf8(number).unwrap().parse().unwrap())
        }
    }
}

fn take(rest: &mut &[u8]) -> u8 {
    let first = rest[0];
    *rest = &rest[1..];
    first
}

fn parse_text(rest: &mut &[u8]) -> String {
    take(rest); // the quote
    let mut text = Vec::new();
    loop {
        match take(rest) {
            b'"' => return String::from_utf8(text).unwrap(),
            b'\\' => text.push(take(rest)),
            b => text.push(b),
        }
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(n) => *out += &n.to_string(),
        Value::Text(text) => write_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (name, member)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

fn matrix() -> u32 {
    const N: usize = 256;
    let mut numbers = Numbers(4);
    let mut random = || (0..N * N).map(|_| numbers.next() as f64 / u32::MAX as f64).collect::<Vec<f64>>();
    let (a, b) = (random(), random());
    let mut product = vec![0.0; N * N];
    for i in 0..N {
        for k in 0..N {
            let factor = a[i * N + k];
            for j in 0..N {
                product[i * N + j] += factor * b[k * N + j];
            }
        }
    }
    product.iter().fold(0, |sum: u32, x| sum.rotate_left(1) ^ x.to_bits() as u32)
}
