use serde_json::{Value, json};

use crate::MODULE;

fn render(arguments: Value) -> Result<String, Value> {
    let result = toolsrv::testing::call(&MODULE, "render", &arguments.to_string())
        .map_err(|e| e.to_json().parse::<Value>().unwrap_or_default())?;
    Ok(result.as_str().unwrap_or_default().to_string())
}

#[test]
fn examples() {
    toolsrv::testing::examples(&MODULE);
}

#[test]
fn kinds() {
    let tests = [
        ("nothing", "", ""),
        ("a list", "1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n"),
        ("tasks", "- [x] done", "<ul>\n<li><input disabled=\"\" type=\"checkbox\" checked=\"\"/>\ndone</li>\n</ul>\n"),
        ("code", "```go\na < b\n```", "<pre><code class=\"language-go\">a &lt; b\n</code></pre>\n"),
        (
            "a class that breaks out",
            "```\"><script>\nx\n```",
            "<pre><code class=\"language-&quot;&gt;&lt;script&gt;\">x\n</code></pre>\n",
        ),
        (
            "a link",
            "[a](https://x.example/?a=1&b=2 \"t\")",
            "<p><a href=\"https://x.example/?a=1&amp;b=2\" title=\"t\">a</a></p>\n",
        ),
        ("an address", "<mail@x.example>", "<p><a href=\"mailto:mail@x.example\">mail@x.example</a></p>\n"),
        ("an image", "![a](b.png)", "<p><img src=\"b.png\" alt=\"a\" /></p>\n"),
        ("an alert", "> [!NOTE]\n> x", "<blockquote class=\"markdown-alert-note\">\n<p>x</p>\n</blockquote>\n"),
        ("quotes stay", "\"a\" -- b", "<p>\"a\" -- b</p>\n"),
    ];
    for (name, text, want) in tests {
        assert_eq!(render(json!({ "text": text })), Ok(want.to_string()), "{name}");
    }
    assert_eq!(render(json!({"text": "\"a\" -- b...", "smart": true})), Ok("<p>“a” – b…</p>\n".to_string()));
}

#[test]
fn raw_html() {
    let text = "<div onclick=\"x\">\n\nHi <b>there</b>\n\n</div>\n\n<!-- c -->";
    let tests = [
        (
            "escape",
            "<p>&lt;div onclick=\"x\"&gt;\n</p>\n<p>Hi &lt;b&gt;there&lt;/b&gt;</p>\n<p>&lt;/div&gt;\n</p>\n<p>&lt;!-- c --&gt;</p>\n",
        ),
        ("drop", "<p>Hi there</p>\n"),
        ("keep", "<div onclick=\"x\">\n<p>Hi <b>there</b></p>\n</div>\n<!-- c -->"),
    ];
    for (html, want) in tests {
        assert_eq!(render(json!({"text": text, "html": html})), Ok(want.to_string()), "{html}");
    }
}

/// Whatever the text, nothing in the page runs code.
#[test]
fn nothing_runs() {
    let texts = [
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](java\tscript:alert(1))",
        "[a](java&#10;script:alert(1))",
        "[a](&#x6A;avascript:alert(1))",
        "[a](\u{1}javascript:alert(1))",
        "[a](<  javascript:alert(1)>)",
        "[a](vbscript:x)",
        "[a](data:text/html,x)",
        "[a](blob:https://x/)",
        "<javascript:alert(1)>",
        "![a](javascript:alert(1))",
        "![a](data:image/svg+xml,x)",
        "[![a](javascript:b)](javascript:c)",
        "[a][b]\n\n[b]: javascript:alert(1)",
        "<img src=x onerror=alert(1)>",
        "<a href=\"javascript:x\">y</a>",
        "a <script\n>alert(1)</script>",
        "[^1]\n\n[^1]: <script>x</script>",
        "| <script> |\n|--|\n| <img src=x> |",
        "# <svg onload=x>",
    ];
    for text in texts {
        for html in ["escape", "drop"] {
            let page = render(json!({"text": text, "html": html})).expect(text).to_lowercase();
            for bad in [
                "<script",
                "<img src=\"j",
                "<img src=\"d",
                "<img src=x",
                "<svg",
                "<a href=\"j",
                "<a href=\"v",
                "<a href=\"d",
                "<a href=\"b",
                "<a href=\"&",
                "<a href=\" ",
            ] {
                assert!(!page.contains(bad), "{text:?}, {html}: got {page:?}, which has {bad}");
            }
        }
    }
    for harmless in ["a/b:c", "#a:b", "?a:b", "HTTPS://x.example", "tel:+1", "ftp://x.example", "//x.example", ""] {
        let page = render(json!({"text": format!("[a]({harmless})")})).expect(harmless);
        assert!(page.contains("<a href="), "{harmless}: got {page}, want a link");
    }
}

#[test]
fn hostile() {
    let n = 50_000;
    let tests = [
        ("quotes", ">".repeat(n)),
        ("lists", "- ".repeat(n)),
        ("emphasis", "*a ".repeat(n)),
        ("emphasis and more", "*a **a ".repeat(n / 2)),
        ("brackets", "[".repeat(n)),
        ("links", "[a](".repeat(n / 2)),
        ("images", "![".repeat(n)),
        ("code", (1..300).map(|i| format!("a{} ", "`".repeat(i))).collect()),
        ("definitions", (0..3000).map(|i| format!("[{i}]: {i}\n")).collect::<String>() + &"[0]".repeat(3000)),
        ("a table", format!("|{}\n|{}\n{}", "a|".repeat(200), "-|".repeat(200), "|\n".repeat(10_000))),
        ("HTML", "<a ".repeat(n)),
        ("comments", "<!--".repeat(n)),
        ("footnotes", "[^a]".repeat(n / 2) + "\n\n[^a]: x"),
        ("entities", "&amp;".repeat(n / 2)),
        ("one definition used often", format!("[a]: {}\n\n{}", "x".repeat(n), "[a]".repeat(n))),
    ];
    for (name, text) in tests {
        match render(json!({ "text": text })) {
            Ok(page) => assert!(page.len() <= 2 << 20, "{name}: got {} bytes", page.len()),
            Err(error) => assert_eq!(error["code"], "too_large", "{name}: {error}"),
        }
    }
}
