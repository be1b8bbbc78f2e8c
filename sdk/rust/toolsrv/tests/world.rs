//! What tools reach outside of the sandbox, natively: a world of the test's in place of the host.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolsrv::http::{self, HeaderValue, NoRedirects, Request, Response, ResponseExt, StatusCode, Timeout};
use toolsrv::settings::Loaded;
use toolsrv::testing::World;
use toolsrv::{Call, Error, Failure, kv, secrets, tool, tools};

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
struct Settings {
    #[serde(default = "metric")]
    units: String,
    limit: i64,
}

fn metric() -> String {
    "metric".into()
}

static SETTINGS: Loaded<Settings> = Loaded::new();

fn prepare() {
    SETTINGS.load();
}

#[derive(Deserialize, JsonSchema)]
struct Sent {
    #[serde(default = "get")]
    method: String,
    url: String,
    #[serde(default)]
    header: String,
}

fn get() -> String {
    "GET".into()
}

/// Send a request.
#[tool(title = "Send", needs(http = ["https://api.example.com/v1/", "http://*.example.org:8080"]))]
fn send(call: &Call, sent: Sent) -> Result<Value, Error> {
    let mut request = Request::builder().method(sent.method.as_str()).uri(sent.url);
    if !sent.header.is_empty() {
        request = request.header(sent.header, "x");
    }
    let request = request.extension(Timeout(Duration::from_micros(1))).extension(NoRedirects).body("body")?;
    let answer = http::send(call, request)?;
    assert!(answer.url().contains("example"), "{}", answer.url());
    let seen: Vec<String> =
        answer.headers().get_all("x-seen").iter().map(|value| value.to_str().unwrap_or_default().to_owned()).collect();
    Ok(json!({"status": answer.status().as_u16(), "seen": seen, "body": answer.text()}))
}

/// Get JSON, and post it.
#[tool(needs(http = ["https://api.example.com"]))]
fn json_of(call: &Call, sent: Sent) -> Result<Value, Error> {
    if sent.method == "POST" {
        return http::post_json(call, sent.url, &json!({"a": 1}))?.json();
    }
    http::get(call, sent.url)?.json()
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

/// Return a secret.
#[tool]
fn reveal(call: &Call, named: Named) -> Result<String, Error> {
    Ok(String::from_utf8(secrets::read(call, named.name)?)?)
}

/// Return the settings.
#[tool]
fn settings(call: &Call) -> Result<Settings, Error> {
    Ok(SETTINGS.get(call)?)
}

/// Call another tool.
#[tool(needs(tools = ["units/convert", "units/broken", "units/busy", "units/none"]))]
fn ask(call: &Call, named: Named) -> Result<Value, Error> {
    match tools::call(call, &named.name, &json!({"value": 1})) {
        Err(failure) if failure.tool_code() == Some("no_unit") => Ok(json!([failure.message(), failure.data()])),
        outcome => Ok(outcome?),
    }
}

/// Count, by a key.
#[tool(needs(kv = true))]
fn count(call: &Call) -> Result<u64, Error> {
    let mut count = 0;
    kv::change(call, "count", None, |entry| {
        count = entry.map_or(0, |entry| String::from_utf8_lossy(&entry.value).parse().unwrap_or(0)) + 1;
        Ok::<_, Error>(count.to_string().into_bytes())
    })?;
    Ok(count)
}

/// Try what keys can do.
#[tool(needs(kv = true))]
fn keys(call: &Call) -> Result<bool, Error> {
    let code = |outcome: Result<u64, Failure>| outcome.map_err(|failure| failure.code().to_owned());
    let conflict = Err("conflict".to_owned());
    assert_eq!(kv::get(call, "none")?, None);
    let old = kv::get(call, "there")?.ok_or("it is not there")?;
    assert_eq!((old.value.as_slice(), old.expires), (b"1".as_slice(), None));
    assert_eq!(code(kv::create(call, "there", "2", None)), conflict);
    let next = kv::update(call, "there", "2", None, old.version)?;
    assert_ne!(next, old.version);
    assert_eq!(code(kv::update(call, "there", "3", None, old.version)), conflict);
    assert_eq!(code(kv::update(call, "there", "3", None, u64::MAX)), Err("invalid".into()));
    assert!(kv::delete_version(call, "there", old.version).is_err());
    assert!(kv::delete_version(call, "there", next)?);
    assert!(!kv::delete(call, "there")?);
    for name in ["a/1", "a/2", "a/3", "b"] {
        kv::create(call, name, name, Duration::from_secs(60))?;
    }
    let list =
        |prefix, after, limit| kv::list(call, prefix, after, limit).map(|found| (found.keys.join(" "), found.more));
    assert_eq!(list("a/", "", 0)?, ("a/1 a/2 a/3".into(), false));
    assert_eq!(list("a/", "a/1", 1)?, ("a/2".into(), true));
    assert_eq!(list("c", "", 1)?, (String::new(), false));
    let expires = kv::get(call, "b")?.and_then(|entry| entry.expires);
    assert_eq!(expires, Some(UNIX_EPOCH + Duration::from_secs(61)));
    Ok(true)
}

/// Use what it does not declare.
#[tool]
fn forgetful(call: &Call) -> Result<Vec<String>, Error> {
    let code = |failure: Option<Failure>| failure.map(|failure| failure.code().to_owned()).unwrap_or_default();
    Ok(vec![
        code(http::get(call, "https://api.example.com/v1/").err()),
        code(kv::get(call, "k").err()),
        code(kv::set(call, "k", "v", None).err()),
        code(kv::delete(call, "k").err()),
        code(kv::list(call, "", "", 0).err()),
        code(tools::call::<Value>(call, "units/convert", &json!({})).err()),
    ])
}

toolsrv::export! {
    needs: { secrets: ["key", "other"], settings: Settings },
    tools: [send, json_of, reveal, settings, ask, count, keys, forgetful],
    warm: prepare,
}

mod plain {
    /// Return one.
    #[toolsrv::tool]
    fn one() -> Result<i64, toolsrv::Error> {
        Ok(1)
    }

    toolsrv::export! { namespace: "plain", version: "1", needs: { kv: true, http: ["https://a.example"] }, tools: [one] }
}

/// Returns a world with all that the tools declare.
fn world() -> World {
    World::new()
        .http(|request| {
            let mut answer = Response::new(format!("{} {}", request.method(), request.uri()).into_bytes());
            match request.uri().path() {
                "/v1/gone" => *answer.status_mut() = StatusCode::GONE,
                "/v1/hangup" => return Err(Failure::new("connect", "It hangs up.")),
                "/json" => *answer.body_mut() = br#"{"b": 2}"#.to_vec(),
                "/echo" => *answer.body_mut() = request.into_body(),
                _ => {}
            }
            answer.headers_mut().append("x-seen", HeaderValue::from_static("1"));
            answer.headers_mut().append("x-seen", HeaderValue::from_static("2"));
            Ok(answer)
        })
        .key("there", "1")
        .clock(|| UNIX_EPOCH + Duration::from_secs(1))
        .secret("key", "s3cr3t")
        .secret("undeclared", "x")
        .settings(json!({"limit": 3}))
        .tool("units/convert", Ok::<_, Error>)
        .tool("units/broken", |_| Err(Error::new("No such unit.").code("no_unit").data([1])))
        .tool("units/busy", |_| Err(Failure::new("overloaded", "Try later.")))
        .tool("units/undeclared", Ok::<_, Error>)
}

#[test]
fn what_is_declared() {
    let manifest: Value = serde_json::from_str(&MODULE.manifest().unwrap()).unwrap();
    let needs = manifest.get("needs").unwrap();
    assert_eq!(needs.get("secrets"), Some(&json!(["key", "other"])));
    assert_eq!(needs.pointer("/settings/properties/limit/type"), Some(&json!("integer")));
    assert_eq!(
        manifest.pointer("/tools/0/needs"),
        Some(&json!({"http": ["https://api.example.com/v1/", "http://*.example.org:8080"]}))
    );
    assert_eq!(manifest.pointer("/tools/2/needs"), None);
    let plain: Value = serde_json::from_str(&plain::MODULE.manifest().unwrap()).unwrap();
    assert_eq!(plain.get("needs"), Some(&json!({"http": ["https://a.example"], "kv": true})));
}

#[test]
fn what_tools_reach() {
    let world = world();
    let seen = |body: &str| Ok(json!({"status": 200, "seen": ["1", "2"], "body": body}));
    for (tool, arguments, want) in [
        ("send", r#"{"url": "https://api.example.com/v1/a?b=c"}"#, seen("GET https://api.example.com/v1/a?b=c")),
        (
            "send",
            r#"{"method": "PUT", "url": "http://A.b.example.org:8080/"}"#,
            seen("PUT http://A.b.example.org:8080/"),
        ),
        ("send", r#"{"url": "https://api.example.com:443/v1"}"#, seen("GET https://api.example.com:443/v1")),
        ("json_of", r#"{"url": "https://api.example.com/json"}"#, Ok(json!({"b": 2}))),
        ("json_of", r#"{"method": "POST", "url": "https://api.example.com/echo"}"#, Ok(json!({"a": 1}))),
        ("json_of", r#"{"url": "https://api.example.com/v1/gone"}"#, Err("bad_status")),
        ("json_of", r#"{"url": "https://api.example.com/v1/"}"#, Err("bad_answer")),
        ("send", r#"{"url": "https://api.example.com/v1/hangup"}"#, Err("connect")),
        ("send", r#"{"url": "https://other.example.com/"}"#, Err("not_granted")),
        ("send", r#"{"url": "https://api.example.com:8443/v1/"}"#, Err("not_granted")),
        ("send", r#"{"url": "http://api.example.com/v1/"}"#, Err("not_granted")),
        ("send", r#"{"url": "https://api.example.com/v10"}"#, Err("not_granted")),
        ("send", r#"{"url": "http://example.org:8080/"}"#, Err("not_granted")),
        ("send", r#"{"url": "http://badexample.org:8080/"}"#, Err("not_granted")),
        ("send", r#"{"url": "https://a:b@api.example.com/v1/"}"#, Err("invalid")),
        ("send", r#"{"url": "/v1/"}"#, Err("invalid")),
        ("send", r#"{"url": "https://api.example.com/v1/", "header": "Host"}"#, Err("invalid")),
        ("send", r#"{"url": "https://api.example.com/v1/", "header": "Proxy-Authorization"}"#, Err("invalid")),
        ("reveal", r#"{"name": "key"}"#, Ok(json!("s3cr3t"))),
        ("reveal", r#"{"name": "other"}"#, Err("not_granted")),
        ("reveal", r#"{"name": "undeclared"}"#, Err("not_granted")),
        ("settings", "", Ok(json!({"units": "metric", "limit": 3}))),
        ("ask", r#"{"name": "units/convert"}"#, Ok(json!({"value": 1}))),
        ("ask", r#"{"name": "units/broken"}"#, Ok(json!(["No such unit.", [1]]))),
        ("ask", r#"{"name": "units/busy"}"#, Err("overloaded")),
        ("ask", r#"{"name": "units/none"}"#, Err("not_granted")),
        ("ask", r#"{"name": "units/undeclared"}"#, Err("not_granted")),
        ("keys", "", Ok(json!(true))),
        ("count", "", Ok(json!(1))),
        ("count", "", Ok(json!(2))),
        ("forgetful", "", Ok(vec!["not_granted"; 6].into())),
    ] {
        match (world.call(&MODULE, tool, arguments), want) {
            (Ok(got), Ok(want)) => assert_eq!(got, want, "{tool} {arguments}"),
            (Err(got), Err(want)) => {
                let got: Value = serde_json::from_str(&got.to_json()).unwrap();
                assert_eq!(
                    (got.get("code"), got.get("status")),
                    (Some(&want.into()), Some(&502.into())),
                    "{tool} {arguments}"
                );
            }
            (got, want) => panic!("{tool} {arguments}: got {got:?}, want {want:?}"),
        }
    }
    assert_eq!(world.value("count"), Some(b"2".to_vec()));
    world.examples(&MODULE);
}

#[test]
fn a_world_that_has_nothing() {
    for (tool, arguments) in [
        ("send", r#"{"url": "https://api.example.com/v1/"}"#),
        ("reveal", r#"{"name": "key"}"#),
        ("ask", r#"{"name": "units/convert"}"#),
        ("settings", ""),
    ] {
        assert!(World::new().call(&MODULE, tool, arguments).is_err(), "{tool}");
        assert!(toolsrv::testing::call(&MODULE, tool, arguments).is_err(), "{tool}, without a world");
    }
}

#[test]
fn expiry() {
    static NOW: AtomicU64 = AtomicU64::new(1000);
    let world = World::new().clock(|| UNIX_EPOCH + Duration::from_secs(NOW.load(Ordering::Relaxed)));
    let world = world.key("there", "1");
    NOW.store(1, Ordering::Relaxed);
    assert_eq!(world.call(&MODULE, "keys", ""), Ok(json!(true)));
    assert_eq!(world.value("b"), Some(b"b".to_vec()));
    NOW.store(61, Ordering::Relaxed);
    assert_eq!(world.value("b"), None);
}
