use serde_json::{Value, json};
use toolsrv::testing::World;

use crate::MODULE;

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[test]
fn examples() {
    World::new().examples(&MODULE);
}

#[test]
fn notes() {
    let world = World::new();
    let first = world.call(&MODULE, "add", r#"{"text": "one"}"#).unwrap();
    let second = world.call(&MODULE, "add", r#"{"text": "zwölf"}"#).unwrap();
    let (first, second) = (text(&first, "/id"), text(&second, "/id"));
    let mut want = [json!({"id": first, "text": "one"}), json!({"id": second, "text": "zwölf"})];
    if second < first {
        want.swap(0, 1); // within one millisecond
    }
    let all = world.call(&MODULE, "list", "{}").unwrap();
    assert_eq!(all, json!({"notes": want, "more": false}));
    let page = world.call(&MODULE, "list", r#"{"limit": 1}"#).unwrap();
    assert_eq!(page, json!({"notes": [want[0]], "more": true}));
    let rest = world.call(&MODULE, "list", &json!({"after": want[0]["id"]}).to_string()).unwrap();
    assert_eq!(rest, json!({"notes": [want[1]], "more": false}));
    for (id, found) in [(&first, true), (&first, false), (&second, true)] {
        assert_eq!(world.call(&MODULE, "remove", &json!({"id": id}).to_string()), Ok(found.into()));
    }
    assert_eq!(world.call(&MODULE, "list", "{}"), Ok(json!({"notes": [], "more": false})));
}

/// A minute may end meanwhile: of five notes, two at least are then refused.
#[test]
fn rate() {
    let world = World::new().settings(json!({"per_minute": 1}));
    let refused: Vec<_> = (0..5).filter_map(|_| world.call(&MODULE, "add", r#"{"text": "one"}"#).err()).collect();
    assert!(refused.len() >= 3, "{} of 5 were refused", refused.len());
    for error in refused {
        assert!(error.to_json().contains(r#""code":"too_many","status":429"#), "{}", error.to_json());
    }
}

#[test]
fn a_count_that_is_none() {
    let minute = toolsrv::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() / 60;
    let world = World::new().key(format!("minute/{minute}"), "x").key(format!("minute/{}", minute + 1), "x");
    assert!(world.call(&MODULE, "add", r#"{"text": "one"}"#).is_err());
}
