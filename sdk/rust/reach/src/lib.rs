//! The Rust guest with a tool for each function that needs a grant, which passes on what it is given and what it gets. Tests of
//! the host build it, and its twins in other languages: testdata/abi/README.md says what its tools do.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolsrv::http::{self, NoRedirects, Request, ResponseExt, Timeout};
use toolsrv::settings::Loaded;
use toolsrv::{Call, Error, kv, secrets, tool, tools};

#[derive(Deserialize, JsonSchema)]
struct Sent {
    #[serde(default = "get_method")]
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    timeout: u64,
    #[serde(default)]
    manual: bool,
}

fn get_method() -> String {
    "GET".into()
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    status: u16,
    url: String,
    headers: BTreeMap<String, Vec<String>>,
    body: String,
}

/// Send a request.
#[tool(needs(http = ["https://api.example.com/v1/"]))]
fn http_send(call: &Call, sent: Sent) -> Result<Answer, Error> {
    let mut request = Request::builder().method(sent.method.as_str()).uri(sent.url);
    for (name, value) in sent.headers {
        request = request.header(name, value);
    }
    if sent.timeout > 0 {
        request = request.extension(Timeout(Duration::from_millis(sent.timeout)));
    }
    if sent.manual {
        request = request.extension(NoRedirects);
    }
    let answer = http::send(call, request.body(sent.body)?)?;
    let mut headers = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in answer.headers() {
        headers.entry(name.to_string()).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    Ok(Answer { status: answer.status().as_u16(), url: answer.url().into(), headers, body: answer.text() })
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    found: bool,
    value: String,
    version: u64,
    expires: u64,
}

/// Get what is under a key.
#[tool(needs(kv = true))]
fn kv_get(call: &Call, key: Key) -> Result<Entry, Error> {
    let Some(entry) = kv::get(call, key.key)? else {
        return Ok(Entry { found: false, value: String::new(), version: 0, expires: 0 });
    };
    let expires = match entry.expires {
        Some(at) => at.duration_since(UNIX_EPOCH)?.as_millis().try_into()?,
        None => 0,
    };
    let value = String::from_utf8_lossy(&entry.value).into_owned();
    Ok(Entry { found: true, value, version: entry.version, expires })
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    key: String,
    value: String,
    #[serde(default)]
    ttl: u64,
    #[serde(default = "whatever")]
    expect: i64,
}

fn whatever() -> i64 {
    -1
}

/// Put a value under a key.
#[tool(needs(kv = true))]
fn kv_set(call: &Call, write: Write) -> Result<u64, Error> {
    let Write { key, value, ttl, expect } = write;
    let ttl = (ttl > 0).then(|| Duration::from_millis(ttl));
    Ok(match expect {
        -1 => kv::set(call, key, value, ttl)?,
        0 => kv::create(call, key, value, ttl)?,
        version => kv::update(call, key, value, ttl, version.try_into()?)?,
    })
}

#[derive(Deserialize, JsonSchema)]
struct Removal {
    key: String,
    #[serde(default = "whatever")]
    expect: i64,
}

/// Remove a key.
#[tool(needs(kv = true))]
fn kv_delete(call: &Call, removal: Removal) -> Result<bool, Error> {
    Ok(match removal.expect {
        -1 => kv::delete(call, removal.key)?,
        version => kv::delete_version(call, removal.key, version.try_into()?)?,
    })
}

#[derive(Deserialize, JsonSchema)]
struct Listing {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    after: String,
    #[serde(default)]
    limit: usize,
}

#[derive(Serialize, JsonSchema)]
struct Keys {
    keys: Vec<String>,
    more: bool,
}

/// List keys.
#[tool(needs(kv = true))]
fn kv_list(call: &Call, listing: Listing) -> Result<Keys, Error> {
    let found = kv::list(call, listing.prefix, listing.after, listing.limit)?;
    Ok(Keys { keys: found.keys, more: found.more })
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Read a secret.
#[tool(needs(secrets = ["stripe_key"]))]
fn secret_read(call: &Call, name: Name) -> Result<String, Error> {
    Ok(String::from_utf8(secrets::read(call, name.name)?)?)
}

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
struct Settings {
    #[serde(default = "metric")]
    units: Units,
    limit: i64,
}

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Units {
    Metric,
    Imperial,
}

fn metric() -> Units {
    Units::Metric
}

static SETTINGS: Loaded<Settings> = Loaded::new();

fn prepare() {
    SETTINGS.load();
}

/// Read the settings.
#[tool]
fn settings_read(call: &Call) -> Result<Settings, Error> {
    Ok(SETTINGS.get(call)?)
}

#[derive(Deserialize, JsonSchema)]
struct Called {
    path: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Call another tool.
#[tool(needs(tools = ["units/convert"]))]
fn tool_call(call: &Call, called: Called) -> Result<Value, Error> {
    Ok(tools::call(call, &called.path, &called.arguments)?)
}

#[derive(Deserialize, JsonSchema)]
struct File {
    folder: String,
    path: String,
}

/// Read a file. It is for wasm32-wasip1 only.
#[tool(needs(files = ["geo"]))]
fn file_read(file: File) -> Result<String, Error> {
    Ok(std::fs::read_to_string(format!("/{}/{}", file.folder, file.path))?)
}

toolsrv::export! {
    namespace: "reach",
    needs: { settings: Settings },
    tools: [http_send, kv_get, kv_set, kv_delete, kv_list, secret_read, settings_read, tool_call, file_read],
    warm: prepare,
}
