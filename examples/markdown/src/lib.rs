//! Markdown to HTML: one tool, `markdown/render`.

mod page;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::{Error, tool};

#[derive(Deserialize, JsonSchema)]
struct Document {
    /// Markdown as GitHub reads it: CommonMark with tables, footnotes, strikethrough, task lists and alerts.
    #[schemars(length(max = 200_000))]
    text: String,
    /// What becomes of HTML in the text: "escape" shows it as text, "drop" leaves it out, "keep" passes it on. With
    /// "keep" the result is only as safe as the text: scripts in it run.
    #[serde(default)]
    html: RawHtml,
    /// Whether straight quotes, "--" and "..." become typographic ones.
    #[serde(default)]
    smart: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RawHtml {
    #[default]
    Escape,
    Drop,
    Keep,
}

/// Make HTML of Markdown. It is safe to put into a page where nothing else is asked for: HTML in the text is shown as
/// text, and links lead to http, https, ftp, mailto and tel addresses only.
#[tool(
    title = "Render Markdown as HTML",
    annotations(read_only = true, open_world = false),
    example(
        arguments = r##"{"text": "# Hello\n\n*Well*, **hello**."}"##,
        result = r#""<h1>Hello</h1>\n<p><em>Well</em>, <strong>hello</strong>.</p>\n""#
    ),
    example(
        arguments = r#"{"text": "Hi <b>you</b>, [click](javascript:alert(1))"}"#,
        result = r#""<p>Hi &lt;b&gt;you&lt;/b&gt;, click</p>\n""#
    ),
    example(
        arguments = r#"{"text": "a | b\n--|--\n1 | ~~2~~"}"#,
        result = r#""<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td><del>2</del></td></tr>\n</tbody></table>\n""#
    )
)]
fn render(document: Document) -> Result<String, Error> {
    page::render(&document.text, document.html, document.smart)
}

toolsrv::export! { namespace: "markdown", tools: [render] }

#[cfg(test)]
mod tests;
