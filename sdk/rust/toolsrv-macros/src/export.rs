use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Ident, LitStr, Path, Result, Token, braced, bracketed};

use crate::needs::Needs;
use crate::{json, names};

/// What stands in `export! { … }`.
struct Export {
    namespace: Option<LitStr>,
    version: Option<LitStr>,
    needs: Needs,
    warm: Option<Path>,
    tools: Vec<Path>,
}

impl Parse for Export {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut out = Export { namespace: None, version: None, needs: Needs::default(), warm: None, tools: Vec::new() };
        let mut seen = Vec::<String>::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let name = key.to_string();
            if seen.contains(&name) {
                return Err(syn::Error::new(key.span(), format!("`{name}` appears twice: remove one")));
            }
            input.parse::<Token![:]>()?;
            match name.as_str() {
                "namespace" => out.namespace = Some(namespace(input.parse()?)?),
                "version" => out.version = Some(input.parse()?),
                "needs" => {
                    let needs;
                    braced!(needs in input);
                    out.needs = needs.call(Needs::parse)?;
                }
                "warm" => out.warm = Some(input.parse()?),
                "tools" => out.tools = tools(input)?,
                _ => {
                    let message =
                        format!("`export!` has no `{name}`: it takes namespace, version, needs, warm and tools");
                    return Err(syn::Error::new(key.span(), message));
                }
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if !seen.iter().any(|name| name == "tools") {
            return Err(syn::Error::new(input.span(), "name the tools: `tools: [a, b]`"));
        }
        Ok(out)
    }
}

fn namespace(namespace: LitStr) -> Result<LitStr> {
    let value = namespace.value();
    match value.split('/').find_map(names::fault) {
        Some(fault) if !value.is_empty() => {
            Err(syn::Error::new(namespace.span(), format!("the namespace {value:?}: {fault}")))
        }
        _ => Ok(namespace),
    }
}

fn tools(input: ParseStream<'_>) -> Result<Vec<Path>> {
    let list;
    let brackets = bracketed!(list in input);
    let tools: Vec<Path> = Punctuated::<Path, Token![,]>::parse_terminated(&list)?.into_iter().collect();
    if tools.is_empty() {
        return Err(syn::Error::new(brackets.span.join(), "a module has at least one tool: `tools: [a]`"));
    }
    Ok(tools)
}

/// Returns the manifest up to the first tool, or where there are settings up to these.
fn head(namespace: &str, version: &str, needs: &Needs) -> String {
    let mut out = String::from(r#"{"abi":1"#);
    for (name, value) in [("namespace", namespace), ("version", version)] {
        if !value.is_empty() {
            out.push_str(&format!(r#","{name}":{}"#, json::quote(value)));
        }
    }
    out.push_str(concat!(r#","sdk":"rust/"#, env!("CARGO_PKG_VERSION"), '"'));
    let end = match needs.to_json() {
        Some(declared) => {
            out.push_str(&format!(r#","needs":{declared}"#));
            NEEDS_END
        }
        None => TOOLS,
    };
    if needs.settings.is_none() {
        out.push_str(end);
    }
    out
}

/// What is between the needs, or where there are none what is before, and the first tool.
const NEEDS_END: &str = r#"},"tools":["#;
const TOOLS: &str = r#","tools":["#;

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let Export { namespace, version, needs, warm, tools } = syn::parse2(input)?;
    let namespace = namespace.map(|namespace| namespace.value()).unwrap_or_default();
    let version = match version {
        Some(version) => version.value(),
        None => std::env::var("CARGO_PKG_VERSION").unwrap_or_default(), // the author's crate, as the macro runs
    };
    let head = head(&namespace, &version, &needs);
    let warm = match warm {
        Some(warm) => quote!(::core::option::Option::Some(#warm)),
        None => quote!(::core::option::Option::None),
    };
    let settings = match &needs.settings {
        Some(settings) => quote_spanned! {settings.span()=>
            ::core::option::Option::Some(::toolsrv::__private::Settings::of::<#settings>(#NEEDS_END))
        },
        None => quote!(::core::option::Option::None),
    };
    let definitions = |constant: TokenStream| {
        let tools = tools
            .iter()
            .map(|tool| quote_spanned!(tool.span()=> <#tool as ::toolsrv::__private::Definition>::#constant));
        quote!(&[#(#tools),*])
    };
    let checks = tools.iter().enumerate().map(|(i, tool)| {
        quote_spanned!(tool.span()=> const _: () = ::toolsrv::__private::check_name(#namespace, TOOLS, #i);)
    });
    let manifests = match &needs.settings {
        Some(_) => quote!(&[::core::option::Option::None]), // its schema is not known yet
        None => definitions(quote!(MANIFEST)),
    };
    let definitions = definitions(quote!(TOOL));
    Ok(quote! {
        /// The tools of this module.
        pub static MODULE: ::toolsrv::Module = {
            const TOOLS: &[::toolsrv::Tool] = #definitions;
            #(#checks)*
            ::toolsrv::Module::new(#head, #settings, TOOLS, #warm)
        };

        #[cfg(target_family = "wasm")]
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn toolsrv_call(tool: i32) -> i32 {
                ::toolsrv::__private::call(&MODULE, tool)
            }

            #[unsafe(no_mangle)]
            extern "C" fn toolsrv_describe() -> i32 {
                ::toolsrv::__private::describe(&MODULE)
            }

            #[unsafe(no_mangle)]
            extern "C" fn toolsrv_warm() {
                ::toolsrv::__private::warm(&MODULE)
            }

            // The manifest where all of it is known now. It is empty otherwise, and then the linker makes no section.
            const MANIFESTS: &[::core::option::Option<&str>] = #manifests;
            const SIZE: usize = ::toolsrv::__private::manifest_size(#head, MANIFESTS);
            #[used]
            #[unsafe(link_section = "toolsrv.manifest")]
            static MANIFEST: [u8; SIZE] = ::toolsrv::__private::manifest(#head, MANIFESTS);
        };
    })
}
