use serde_json::json;
use toolsrv::Failure;
use toolsrv::http::{Response, StatusCode};
use toolsrv::testing::World;

use crate::{MODULE, sign};

const KEY: &str = "whsec_0123456789";

/// Returns a world whose service takes what is signed with the key.
fn world() -> World {
    World::new().secret("signing_key", KEY).http(|request| {
        assert_eq!(request.uri(), "https://events.example.com/v1/events");
        assert!(request.headers().get("authorization").is_none(), "the host adds it");
        let body = String::from_utf8(request.body().clone()).unwrap();
        let given = request.headers()["x-signature"].to_str().unwrap().to_owned();
        let time = given.strip_prefix("t=").and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap();
        assert_eq!(given, format!("t={time},v1={}", sign(KEY.as_bytes(), time, &body).unwrap()));
        let mut answer = Response::new(br#"{"id": "evt_1"}"#.to_vec());
        if body.contains("busy") {
            return Err(Failure::new("timeout", "The server took too long."));
        }
        if body.contains("refused") {
            *answer.status_mut() = StatusCode::UNAUTHORIZED;
        }
        Ok(answer)
    })
}

#[test]
fn events() {
    world().examples(&MODULE);
    let sent = world().call(&MODULE, "send", r#"{"kind": "order.paid"}"#);
    assert_eq!(sent, Ok(json!({"id": "evt_1"})));
    for (kind, want) in
        [("busy", r#""code":"timeout","status":502"#), ("refused", r#""code":"bad_status","status":502"#)]
    {
        let error = world().call(&MODULE, "send", &json!({"kind": kind}).to_string()).unwrap_err().to_json();
        assert!(error.contains(want) && !error.contains(KEY), "{error}");
    }
}

#[test]
fn without_a_key() {
    let error = World::new().call(&MODULE, "send", r#"{"kind": "order.paid"}"#).unwrap_err();
    assert!(error.to_json().contains(r#""code":"not_granted""#), "{}", error.message());
}

#[test]
fn signatures() {
    // RFC 4231 has no time in its messages: this one was made with OpenSSL.
    assert_eq!(sign(b"key", 1, "body").unwrap(), "91b5374b153842ad05b2c4eab9349b8321b14703165bd3fb8b034dfb8be98ae5");
}
