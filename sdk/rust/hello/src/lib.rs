//! The smallest tool that has arguments and a result of its own.

#![forbid(unsafe_code)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::{Error, tool};

/// Whom to greet.
#[derive(Deserialize, JsonSchema)]
struct Guest {
    /// The name as it is written.
    name: String,
    /// How often.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 10))]
    times: u32,
}

fn once() -> u32 {
    1
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    text: String,
    length: usize,
}

/// Greet somebody by name.
#[tool(example(arguments = r#"{"name": "Ada"}"#, result = r#"{"text": "Hello, Ada!", "length": 11}"#))]
fn hello(guest: Guest) -> Result<Greeting, Error> {
    if guest.name.is_empty() {
        return Err(Error::new("The name is empty: say whom to greet.").code("no_name"));
    }
    let text = format!("Hello, {}!", guest.name).repeat(guest.times as usize);
    Ok(Greeting { length: text.chars().count(), text })
}

toolsrv::export! { namespace: "greetings", tools: [hello] }

#[cfg(test)]
mod tests {
    use super::MODULE;

    #[test]
    fn examples() {
        toolsrv::testing::examples(&MODULE);
    }

    #[test]
    fn greets_three_times() {
        let got = toolsrv::testing::call(&MODULE, "hello", r#"{"name": "A", "times": 3}"#).unwrap();
        assert_eq!(got["length"], 27);
    }

    #[test]
    fn needs_a_name() {
        let error = toolsrv::testing::call(&MODULE, "hello", r#"{"name": ""}"#).unwrap_err();
        assert_eq!(error.to_json(), r#"{"message":"The name is empty: say whom to greet.","code":"no_name"}"#);
    }
}
