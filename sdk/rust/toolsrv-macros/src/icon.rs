use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Error, LitStr, Result, Token, bracketed};

use crate::json;

/// A picture that clients may show beside a tool.
pub(crate) struct Icon {
    src: String,
    mime_type: Option<String>,
    sizes: Vec<String>,
    theme: Option<String>,
}

/// The largest number of sizes of an icon.
const MAX_SIZES: usize = 16;

impl Icon {
    /// Reads `icon(…)`.
    pub(crate) fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let (mut src, mut mime_type, mut sizes, mut theme) = (None, None, None, None);
        meta.parse_nested_meta(|inner| {
            let text = |option: &mut Option<LitStr>| {
                if option.is_some() {
                    return Err(inner.error("this appears twice: remove one"));
                }
                *option = Some(inner.value()?.parse()?);
                Ok(())
            };
            if inner.path.is_ident("src") {
                text(&mut src)
            } else if inner.path.is_ident("mime_type") {
                text(&mut mime_type)
            } else if inner.path.is_ident("theme") {
                text(&mut theme)
            } else if inner.path.is_ident("sizes") && sizes.is_none() {
                let value = inner.value()?;
                let list;
                bracketed!(list in value);
                let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
                sizes = Some(texts.into_iter().collect());
                Ok(())
            } else if inner.path.is_ident("sizes") {
                Err(inner.error("this appears twice: remove one"))
            } else {
                Err(inner.error("an icon has `src`, `mime_type`, `sizes` and `theme`"))
            }
        })?;
        let Some(src) = src else {
            return Err(meta.error("an icon needs an address: `src = \"https://…\"`"));
        };
        let sizes: Vec<LitStr> = sizes.unwrap_or_default();
        if sizes.len() > MAX_SIZES {
            return Err(meta.error(format!("an icon has {MAX_SIZES} sizes at most")));
        }
        let value = |option: &Option<LitStr>| option.as_ref().map(LitStr::value);
        let icon = Self {
            src: src.value(),
            mime_type: value(&mime_type),
            sizes: sizes.iter().map(LitStr::value).collect(),
            theme: value(&theme),
        };
        let checks = [(&src, src_fault(&icon.src, icon.mime_type.as_deref()))]
            .into_iter()
            .chain(mime_type.iter().map(|text| (text, type_fault(&text.value()))))
            .chain(sizes.iter().map(|text| (text, size_fault(&text.value()))))
            .chain(theme.iter().map(|text| (text, theme_fault(&text.value()))));
        for (at, fault) in checks {
            if let Some(fault) = fault {
                return Err(Error::new(at.span(), fault));
            }
        }
        Ok(icon)
    }

    /// Returns how much of the room for icons it takes.
    pub(crate) fn size(&self) -> usize {
        self.src.len()
    }

    /// Returns the icon as the manifest has it.
    pub(crate) fn to_json(&self) -> String {
        let mut out = format!(r#"{{"src":{}"#, json::quote(&self.src));
        let mut text = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                out.push_str(&format!(r#","{name}":{}"#, json::quote(value)));
            }
        };
        text("mimeType", &self.mime_type);
        text("theme", &self.theme);
        if !self.sizes.is_empty() {
            let sizes: Vec<String> = self.sizes.iter().map(|size| json::quote(size)).collect();
            out.push_str(&format!(r#","sizes":[{}]"#, sizes.join(",")));
        }
        out.push('}');
        out
    }
}

/// Returns what is wrong with a type, or None.
fn type_fault(kind: &str) -> Option<String> {
    (!is_image(kind)).then(|| format!("{kind:?} is not the type of a picture: write it like \"image/png\""))
}

/// Returns what is wrong with a size, or None.
fn size_fault(size: &str) -> Option<String> {
    (!is_size(size))
        .then(|| format!("{size:?} is not a size: write it like \"48x48\", or \"any\" for a picture that scales"))
}

/// Returns what is wrong with a theme, or None.
fn theme_fault(theme: &str) -> Option<String> {
    (!["light", "dark"].contains(&theme)).then(|| format!("{theme:?} is not known: it can be \"light\" or \"dark\""))
}

/// Returns what is wrong with an address, or None.
fn src_fault(src: &str, mime_type: Option<&str>) -> Option<String> {
    if let Some(data) = src.strip_prefix("data:") {
        return match data.split_once(";base64,") {
            Some((kind, content)) if is_image(kind) => match mime_type {
                Some(said) if said != kind => {
                    Some(format!("the data is {kind}, but `mime_type` says {said}: remove one"))
                }
                _ if !is_base64(content) => Some("what follows \";base64,\" is not base64 with its padding".into()),
                _ => None,
            },
            _ => Some("a data URI holds a picture in base64: write it like \"data:image/png;base64,…\"".into()),
        };
    }
    let Some(address) = src.strip_prefix("https://") else {
        return Some(
            "this is neither an https nor a data URI: give the address of a picture, \"https://…\", or the picture itself, \
             \"data:image/png;base64,…\""
                .into(),
        );
    };
    let (authority, rest) = address.split_at(address.find(['/', '?', '#']).unwrap_or(address.len()));
    if authority.contains('@') {
        return Some("this has a user's name or password, which every client would see: remove it".into());
    }
    (!is_authority(authority) || !is_rest(rest))
        .then(|| "this is not an address: write a host after https://, and escape what a URI can't hold with %".into())
}

/// Reports whether a text is the type of a picture, such as "image/png".
fn is_image(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.strip_prefix("image/").is_some_and(|kind| {
        kind.len() <= 63
            && kind.bytes().next().is_some_and(plain)
            && kind.bytes().all(|c| plain(c) || b".+-".contains(&c))
    })
}

fn is_size(text: &str) -> bool {
    let side = |side: &str| {
        (1..=5).contains(&side.len()) && !side.starts_with('0') && side.bytes().all(|c| c.is_ascii_digit())
    };
    text == "any" || text.split_once('x').is_some_and(|(width, height)| side(width) && side(height))
}

/// Reports whether a text is a host, perhaps with a port.
fn is_authority(text: &str) -> bool {
    let inner_end = text.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match text.rfind(':').filter(|colon| *colon >= inner_end) {
        Some(colon) => (text.get(..colon).unwrap_or_default(), text.get(colon + 1..)),
        None => (text, None),
    };
    let port_fits = port.is_none_or(|port| (1..=5).contains(&port.len()) && port.bytes().all(|c| c.is_ascii_digit()));
    let host_fits = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').is_some_and(|inner| {
            !inner.is_empty() && inner.bytes().all(|c| c.is_ascii_hexdigit() || c == b':' || c == b'.')
        }),
        None => !host.is_empty() && host.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)),
    };
    port_fits && host_fits
}

/// Reports whether a text can follow the host of an address.
fn is_rest(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(c) = bytes.next() {
        let fits = match c {
            b'%' => [bytes.next(), bytes.next()].iter().all(|digit| digit.is_some_and(|c| c.is_ascii_hexdigit())),
            c => c.is_ascii_alphanumeric() || b"._~:/?#@!$&'()*+,;=[]-".contains(&c),
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Reports whether a text is base64 of at least one byte, with its padding and nothing left over.
fn is_base64(text: &str) -> bool {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let left_over = match text.len() - digits.len() {
        1 => 0b11,
        2 => 0b1111,
        _ => 0,
    };
    let last = digits.bytes().last().and_then(|last| DIGITS.iter().position(|digit| *digit == last));
    text.len() % 4 == 0
        && digits.bytes().all(|c| DIGITS.contains(&c))
        && last.is_some_and(|value| value & left_over == 0)
}

/// Reports whether the macro takes an icon.
#[cfg(test)]
pub(crate) fn is_taken(src: &str, mime_type: Option<&str>, sizes: &[String], theme: Option<&str>) -> bool {
    src_fault(src, mime_type).is_none()
        && mime_type.and_then(type_fault).is_none()
        && sizes.len() <= MAX_SIZES
        && sizes.iter().all(|size| size_fault(size).is_none())
        && theme.and_then(theme_fault).is_none()
}
