use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitBool, LitStr, Result, Token, Type, bracketed};

use crate::{json, names};

/// What a module or a tool declares that it needs, beyond computing.
#[derive(Default)]
pub(crate) struct Needs {
    lists: [Option<Vec<LitStr>>; LISTS.len()],
    kv: Option<bool>,
    /// The type of the settings, which a module has.
    pub(crate) settings: Option<Type>,
}

/// A check returns what is wrong with an entry.
type Check = fn(&str) -> Option<String>;

/// The lists, in the order of the manifest, each with the check of an entry.
const LISTS: [(&str, Check); 4] = [("http", url), ("secrets", secret), ("tools", path), ("files", names::fault)];

/// The bounds of the server.
const MAX: usize = 100; // of each kind
const MAX_URL: usize = 2000;

impl Needs {
    /// Reads `http = […], kv = true`: with `=` in an attribute, and with `:` in `export!`.
    pub(crate) fn read(input: ParseStream<'_>, colon: bool) -> Result<Self> {
        let mut out = Self::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if colon {
                input.parse::<Token![:]>()?;
            } else {
                input.parse::<Token![=]>()?;
            }
            out.need(&key, input, colon)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(out)
    }

    fn need(&mut self, key: &Ident, input: ParseStream<'_>, settings: bool) -> Result<()> {
        let twice = || Err(Error::new(key.span(), format!("`{key}` appears twice: remove one")));
        let known = self.lists.iter_mut().zip(LISTS).find(|(_, (name, _))| key == name);
        if let Some((list, (_, check))) = known {
            if list.is_some() {
                return twice();
            }
            *list = Some(entries(input, check)?);
        } else if key == "kv" {
            if self.kv.is_some() {
                return twice();
            }
            self.kv = Some(input.parse::<LitBool>()?.value());
        } else if key == "settings" && settings {
            if self.settings.is_some() {
                return twice();
            }
            self.settings = Some(input.parse()?);
        } else if key == "settings" {
            return Err(Error::new(key.span(), "settings are the module's: put them into the `needs` of `export!`"));
        } else {
            let message = format!("needs have no `{key}`: they are http, kv, secrets, settings, tools and files");
            return Err(Error::new(key.span(), message));
        }
        Ok(())
    }

    /// Returns the object of the manifest without its end, and without the settings, or None where nothing is needed.
    pub(crate) fn to_json(&self) -> Option<String> {
        let mut members = Vec::new();
        for (list, (name, _)) in self.lists.iter().zip(LISTS) {
            if let Some(list) = list.as_ref().filter(|list| !list.is_empty()) {
                let entries: Vec<String> = list.iter().map(|entry| json::quote(&entry.value())).collect();
                members.push(format!(r#""{name}":[{}]"#, entries.join(",")));
            }
        }
        if self.kv == Some(true) {
            members.push(r#""kv":true"#.into());
        }
        (!members.is_empty() || self.settings.is_some()).then(|| format!("{{{}", members.join(",")))
    }
}

impl Parse for Needs {
    /// Reads the needs of a module.
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        Self::read(input, true)
    }
}

/// Reads `["a", "b"]`.
fn entries(input: ParseStream<'_>, check: Check) -> Result<Vec<LitStr>> {
    let list;
    let brackets = bracketed!(list in input);
    let entries: Vec<LitStr> = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?.into_iter().collect();
    if entries.len() > MAX {
        let message = format!("{} are more than the {MAX} that are allowed", entries.len());
        return Err(Error::new(brackets.span.join(), message));
    }
    let mut seen = Vec::new();
    for entry in &entries {
        if let Some(fault) = check(&entry.value()) {
            return Err(Error::new(entry.span(), fault));
        }
        if seen.contains(&entry.value()) {
            return Err(Error::new(entry.span(), "this appears twice: remove one"));
        }
        seen.push(entry.value());
    }
    Ok(entries)
}

/// Returns what is wrong with the form of an address, or None. What it means is for those who grant it to say.
fn url(url: &str) -> Option<String> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let odd = url.chars().any(|c| !c.is_ascii_graphic() || "?#@\\{}<>\"^|`".contains(c));
    let good = !odd && url.len() <= MAX_URL && host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'));
    (!good).then(|| {
        format!("{url:?} is not the address of a service: use one such as https://api.example.com or https://*.example.com/v2/")
    })
}

/// Returns what is wrong with the name of a secret, or None.
fn secret(name: &str) -> Option<String> {
    (names::fault(&name.replace('.', "_")).is_some() || name.starts_with('.')).then(|| {
        format!("{name:?} is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, and begin with another than a dot")
    })
}

/// Returns what is wrong with the path of a tool, or None.
fn path(path: &str) -> Option<String> {
    path.split('/')
        .any(|name| names::fault(name).is_some())
        .then(|| format!("{path:?} is not the path of a tool: name one such as units/convert"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    // Server and SDKs take and refuse the same: see testdata/abi/README.md.
    #[test]
    fn as_the_server() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/abi/needs.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for (list, want, least) in [("accepted", true, 5), ("refused", false, 15)] {
            let cases = all[list].as_array().unwrap();
            assert!(cases.len() >= least, "{list} has {} cases", cases.len());
            for case in cases {
                let needs = case["needs"].as_object().unwrap();
                let text: Vec<String> = needs.iter().map(|(name, need)| format!("{name}: {need}")).collect();
                let taken = syn::parse_str::<Needs>(&text.join(", ")).is_ok();
                assert_eq!(taken, want, "{}", case["name"]);
            }
        }
    }
}
