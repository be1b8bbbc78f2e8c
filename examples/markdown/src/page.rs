//! Markdown becomes HTML that is safe to show, whoever wrote the Markdown.

use std::fmt;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use toolsrv::Error;

use crate::RawHtml;

/// How many bytes of HTML there may be: a few characters of Markdown can become many.
const MAX_HTML: usize = 2 << 20;

/// What a link may lead to. Anything else (javascript:, data:, vbscript: …) can run code or show a foreign page as
/// ours.
const SCHEMES: [&str; 5] = ["http", "https", "mailto", "tel", "ftp"];

/// Renders GitHub's kind of Markdown: CommonMark with tables, footnotes, strikethrough, task lists and alerts.
pub fn render(text: &str, raw: RawHtml, smart: bool) -> Result<String, Error> {
    let mut options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    options.set(Options::ENABLE_SMART_PUNCTUATION, smart);
    let mut links = Vec::new();
    let events = Parser::new_ext(text, options).filter_map(|event| allowed(event, raw, &mut links));
    let mut page = Page(String::new());
    html::write_html_fmt(&mut page, events).map_err(|_| {
        Error::new(
            "The HTML has more than 2 MiB: render the text in parts, and look for deeply nested quotes and lists.",
        )
        .code("too_large")
    })?;
    Ok(page.0)
}

/// Returns the event as it may be written, or None. links holds, for each link and image that is open, whether it was
/// written.
fn allowed<'a>(event: Event<'a>, raw: RawHtml, links: &mut Vec<bool>) -> Option<Event<'a>> {
    match event {
        Event::Start(Tag::Link { ref dest_url, .. } | Tag::Image { ref dest_url, .. }) => {
            links.push(is_harmless(dest_url));
            links.last().is_some_and(|written| *written).then_some(event)
        }
        Event::End(TagEnd::Link | TagEnd::Image) => links.pop().unwrap_or(false).then_some(event),
        Event::Html(text) | Event::InlineHtml(text) if raw == RawHtml::Escape => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) if raw == RawHtml::Escape => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) if raw == RawHtml::Escape => Some(Event::End(TagEnd::Paragraph)),
        Event::Html(_) | Event::InlineHtml(_) if raw == RawHtml::Drop => None,
        event => Some(event),
    }
}

/// Whether an address has a scheme that is known to be harmless, or none. Browsers skip white space and control
/// characters.
fn is_harmless(address: &str) -> bool {
    let address: String = address.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    match address.find([':', '/', '?', '#']) {
        Some(end) if address[end..].starts_with(':') => {
            SCHEMES.iter().any(|scheme| address[..end].eq_ignore_ascii_case(scheme))
        }
        _ => true,
    }
}

/// A page that stops where it would grow too large.
struct Page(String);

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_HTML {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
