use serde_json::{Value, json};

use crate::MODULE;

fn call(tool: &str, arguments: Value) -> Result<Value, Value> {
    toolsrv::testing::call(&MODULE, tool, &arguments.to_string()).map_err(|e| e.to_json().parse().unwrap_or_default())
}

#[test]
fn examples() {
    toolsrv::testing::examples(&MODULE);
}

/// The digests of "abc" as the standards and the algorithms' authors give them.
#[test]
fn digests() {
    let tests = [
        ("md5", "900150983cd24fb0d6963f7d28e17f72"),
        ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("sha224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
        ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("sha384", "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"),
        (
            "sha512",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        ("sha3-256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (
            "sha3-384",
            "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
        ),
        (
            "sha3-512",
            "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
        ),
        ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
    ];
    for (algorithm, want) in tests {
        for (data, encoding) in [("abc", "utf8"), ("616263", "hex"), (" 616263\n", "hex"), ("YWJj", "base64")] {
            let got = call("digest", json!({"data": data, "encoding": encoding, "algorithm": algorithm}));
            assert_eq!(got, Ok(json!(want)), "{algorithm} of {data:?}, {encoding}");
        }
    }
}

/// RFC 4231, test cases 1, 2 and 6, and RFC 2202 for the old ones.
#[test]
fn hmacs() {
    let long = "Test Using Larger Than Block-Size Key - Hash Key First";
    let tests = [
        ("sha256", "0b".repeat(20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        ("sha256", "aa".repeat(131), long, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        (
            "sha384",
            "0b".repeat(20),
            "Hi There",
            "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
        ),
        (
            "sha512",
            "4a656665".to_string(),
            "what do ya want for nothing?",
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
        ("sha1", "0b".repeat(20), "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
        ("md5", "0b".repeat(16), "Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
        (
            "sha3-256",
            "4a656665".to_string(),
            "what do ya want for nothing?",
            "c7d4072e788877ae3596bbb0da73b887c9171f93095b294ae857fbe2645e1ba5",
        ),
        (
            "sha3-512",
            "4a656665".to_string(),
            "what do ya want for nothing?",
            "5a4bfeab6166427c7a3647b747292b8384537cdb89afb3bf5665e4c5e709350b287baec921fd7ca0ee7a0c31d022a95e1fc92ba9d77df883960275beb4e62024",
        ),
    ];
    for (algorithm, key, data, want) in tests {
        let mut arguments = json!({"data": data, "key": key, "key_encoding": "hex", "algorithm": algorithm});
        assert_eq!(call("hmac", arguments.clone()), Ok(json!(want)), "{algorithm} of {data:?}");
        for (mac, valid) in [
            (want.to_string(), true),
            (want.to_uppercase(), true),
            (want.replace('7', "8"), false),
            (want[2..].to_string(), false),
        ] {
            arguments["mac"] = json!(mac);
            assert_eq!(call("verify", arguments.clone()), Ok(json!({ "valid": valid })), "{algorithm}: {mac}");
        }
    }
}

#[test]
fn encodings() {
    let tests = [
        ("padded", "base64", "+/8=", Ok("fbff")),
        ("not padded", "base64", "+/8", Ok("fbff")),
        ("of addresses", "base64", "-_8", Ok("fbff")),
        ("upper case", "hex", "FBfF", Ok("fbff")),
        ("nothing", "hex", "", Ok("")),
        ("both alphabets", "base64", "-/8=", Err("The argument \"data\" is not valid: it is not base64")),
        ("white space within", "base64", "+/\n8=", Err("it is not base64")),
        ("half a byte", "hex", "fbf", Err("hex has two digits for each byte, and it has 3 digits")),
        (
            "no digit",
            "hex",
            "fbgg",
            Err("'g' at character 3 is not a hex digit; set the encoding to utf8 for plain text"),
        ),
        ("no ASCII", "hex", "ﬀﬀ", Err("at character 1 is not a hex digit")),
    ];
    for (name, encoding, data, want) in tests {
        let got = call("digest", json!({"data": data, "encoding": encoding}));
        match want {
            Ok(hex) => assert_eq!(got, call("digest", json!({"data": hex, "encoding": "hex"})), "{name}"),
            Err(message) => {
                let error = got.expect_err(name);
                assert_eq!(error["code"], "bad_encoding", "{name}: {error}");
                assert!(
                    error["message"].as_str().is_some_and(|got| got.contains(message)),
                    "{name}: got {error}, want {message}"
                );
            }
        }
    }
}

#[test]
fn keys() {
    for encoding in ["utf8", "hex", "base64"] {
        let error = call("hmac", json!({"data": "x", "key": "", "key_encoding": encoding})).expect_err(encoding);
        assert_eq!(error["code"], "no_key", "{encoding}: {error}");
    }
    // A message never names the key.
    let error = call("hmac", json!({"data": "x", "key": "s3cret", "key_encoding": "hex"})).expect_err("no hex");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}
