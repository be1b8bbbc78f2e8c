use syn::meta::ParseNestedMeta;
use syn::{Error, Lit, LitStr, Result};

use crate::icon::Icon;
use crate::json;

/// What clients show of a tool, and go by, beside its name and description.
#[derive(Default)]
pub(crate) struct About {
    title: Option<LitStr>,
    annotations: Option<Annotations>,
    icons: Vec<Icon>,
}

/// What an author says of a tool's effects, in the order of the manifest.
type Annotations = [Option<bool>; ANNOTATIONS.len()];

/// The annotations: their names in the attribute, and those in the manifest.
const ANNOTATIONS: [(&str, &str); 4] = [
    ("read_only", "readOnly"),
    ("destructive", "destructive"),
    ("idempotent", "idempotent"),
    ("open_world", "openWorld"),
];

/// The bounds of the server.
const MAX_TITLE: usize = 200;
const MAX_ICONS: usize = 8;
const MAX_ICON_BYTES: usize = 32 << 10;

impl About {
    /// Reads an option if it is one of these, and reports whether it was.
    pub(crate) fn option(&mut self, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        if meta.path.is_ident("title") {
            if self.title.is_some() {
                return Err(meta.error("this appears twice: remove one"));
            }
            let title: LitStr = meta.value()?.parse()?;
            if let Some(fault) = title_fault(&title.value()) {
                return Err(Error::new(title.span(), format!("the title {fault}")));
            }
            self.title = Some(title);
        } else if meta.path.is_ident("annotations") {
            if self.annotations.is_some() {
                return Err(meta.error("this appears twice: remove one"));
            }
            self.annotations = Some(annotations(meta)?);
        } else if meta.path.is_ident("icon") {
            self.icons.push(Icon::read(meta)?);
            if self.icons.len() > MAX_ICONS {
                return Err(meta.error(format!("a tool has {MAX_ICONS} icons at most")));
            }
            let size: usize = self.icons.iter().map(Icon::size).sum();
            if size > MAX_ICON_BYTES {
                return Err(meta.error(format!(
                    "the `src` of the icons have {size} bytes together, {MAX_ICON_BYTES} are allowed: use smaller pictures, \
                     or https addresses"
                )));
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns what the manifest says of it: members of an object with commas between, or nothing.
    pub(crate) fn members(&self) -> String {
        let mut out = Vec::new();
        if let Some(title) = &self.title {
            out.push(format!(r#""title":{}"#, json::quote(&title.value())));
        }
        if let Some(annotations) = &self.annotations {
            let said: Vec<String> = annotations
                .iter()
                .zip(ANNOTATIONS)
                .filter_map(|(value, (_, name))| value.map(|value| format!(r#""{name}":{value}"#)))
                .collect();
            out.push(format!(r#""annotations":{{{}}}"#, said.join(",")));
        }
        if !self.icons.is_empty() {
            let icons: Vec<String> = self.icons.iter().map(Icon::to_json).collect();
            out.push(format!(r#""icons":[{}]"#, icons.join(",")));
        }
        out.join(",")
    }
}

/// Reads `annotations(…)`.
fn annotations(meta: &ParseNestedMeta<'_>) -> Result<Annotations> {
    let mut out = Annotations::default();
    meta.parse_nested_meta(|inner| {
        let known = out.iter_mut().zip(ANNOTATIONS).find(|(_, (name, _))| inner.path.is_ident(name));
        let Some((value, _)) = known else {
            return Err(inner.error("annotations are `read_only`, `destructive`, `idempotent` and `open_world`"));
        };
        if value.is_some() {
            return Err(inner.error("this appears twice: remove one"));
        }
        match inner.value()?.parse()? {
            Lit::Bool(said) => *value = Some(said.value()),
            other => {
                return Err(Error::new(
                    other.span(),
                    "an annotation is `true` or `false`; leave out what is not known",
                ));
            }
        }
        Ok(())
    })?;
    if contradict(&out) {
        let message =
            "the tool is both `read_only` and `destructive`: a tool that changes nothing destroys nothing; remove one";
        return Err(meta.error(message));
    }
    Ok(out)
}

fn contradict(annotations: &Annotations) -> bool {
    matches!(annotations, [Some(true), Some(true), ..])
}

/// Returns what is wrong with a title, or None.
fn title_fault(title: &str) -> Option<String> {
    let length = title.chars().count();
    if title.trim().is_empty() {
        Some("is blank: leave it out, or say in a few words what the tool is".into())
    } else if length > MAX_TITLE {
        Some(format!("has {length} characters, {MAX_TITLE} are allowed: say the rest in the doc comment"))
    } else if title.chars().any(controls) {
        Some(
            "has line breaks, or other characters that control how text is shown: write it on one line, without them"
                .into(),
        )
    } else {
        None
    }
}

/// Reports whether a character controls how others are shown: a control character, a separator of lines, or one that turns
/// the direction, with which a title could say something else than it seems to.
fn controls(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Returns whether the macro would take a tool of testdata/abi/options.json.
    fn taken(tool: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let title = text(&tool["title"]);
        let annotations = ANNOTATIONS.map(|(_, name)| tool["annotations"][name].as_bool());
        let icons = list(&tool["icons"]);
        (title.is_empty() || title_fault(&title).is_none())
            && !contradict(&annotations)
            && icons.len() <= MAX_ICONS
            && icons.iter().all(|icon| {
                let sizes: Vec<String> = list(&icon["sizes"]).iter().map(text).collect();
                let option = |name: &str| icon.get(name).map(text);
                crate::icon::is_taken(
                    &text(&icon["src"]),
                    option("mimeType").as_deref(),
                    &sizes,
                    option("theme").as_deref(),
                )
            })
    }

    // Server and SDKs take and refuse the same: see testdata/abi/README.md.
    #[test]
    fn as_the_server() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/abi/options.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for (list, want, least) in [("accepted", true, 15), ("refused", false, 50)] {
            let cases = all[list].as_array().unwrap();
            assert!(cases.len() >= least, "{list} has {} cases", cases.len());
            for case in cases {
                assert_eq!(taken(&case["tool"]), want, "{}", case["name"]);
            }
        }
    }
}
