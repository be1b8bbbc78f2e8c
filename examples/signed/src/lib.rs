//! A tool that sends events to a service which wants two keys: one to sign with, which the tool has to see, and one that says who
//! sends it, which the host adds and the tool never sees.

use std::fmt::Write;
use std::time::UNIX_EPOCH;

use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use toolsrv::http::{self, Request, ResponseExt};
use toolsrv::settings::Loaded;
use toolsrv::{Call, Error, secrets, tool};

#[cfg(test)]
mod tests;

/// What the operator sets.
#[derive(Clone, Deserialize, JsonSchema)]
struct Settings {
    /// The service that takes the events.
    #[serde(default = "service")]
    #[schemars(regex(pattern = "^https://[^/?#]+$"))]
    service: String,
}

fn service() -> String {
    "https://events.example.com".into()
}

static SETTINGS: Loaded<Settings> = Loaded::new();

fn prepare() {
    SETTINGS.load();
}

#[derive(Deserialize, JsonSchema)]
struct Event {
    /// What has happened, such as order.paid.
    #[schemars(length(min = 1, max = 100))]
    kind: String,
    /// Anything that belongs to it.
    #[serde(default)]
    data: Map<String, Value>,
}

#[derive(Serialize, JsonSchema)]
struct Receipt {
    /// By which the service knows the event.
    id: String,
}

/// What the service answers.
#[derive(Deserialize)]
struct Accepted {
    id: String,
}

/// Send an event to the service for events, signed, and return the id that it gives it.
#[tool(
    title = "Send an event",
    annotations(read_only = false, destructive = false, idempotent = false, open_world = true),
    needs(http = ["https://events.example.com/v1/"], secrets = ["signing_key"]),
    example(arguments = r#"{"kind": "order.paid", "data": {"order": 17}}"#)
)]
fn send(call: &Call, event: Event) -> Result<Receipt, Error> {
    let time = toolsrv::now().duration_since(UNIX_EPOCH)?.as_secs();
    let body = json!({"kind": event.kind, "data": event.data}).to_string();
    let signature = sign(&secrets::read(call, "signing_key")?, time, &body)?;
    let request = Request::post(format!("{}/v1/events", SETTINGS.get(call)?.service))
        .header("Content-Type", "application/json")
        .header("X-Signature", format!("t={time},v1={signature}"))
        .body(body)?;
    let accepted: Accepted = http::send(call, request)?.json()?;
    Ok(Receipt { id: accepted.id })
}

/// Returns the signature of a body at a time, as the service wants it: HMAC-SHA-256 of both, in hex.
fn sign(key: &[u8], time: u64, body: &str) -> Result<String, Error> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)?;
    mac.update(format!("{time}.{body}").as_bytes());
    let mut out = String::new();
    for byte in mac.finalize().into_bytes() {
        write!(out, "{byte:02x}")?;
    }
    Ok(out)
}

toolsrv::export! { namespace: "signed", needs: { settings: Settings }, tools: [send], warm: prepare }
