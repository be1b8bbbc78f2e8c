use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Ident, LitStr, Path, Result, Token, bracketed};

use crate::names;

/// What stands in `export! { … }`.
struct Export {
    namespace: Option<LitStr>,
    version: Option<Expr>,
    warm: Option<Path>,
    tools: Vec<Path>,
}

impl Parse for Export {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut out = Export { namespace: None, version: None, warm: None, tools: Vec::new() };
        let mut seen = Vec::<String>::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let name = key.to_string();
            if seen.contains(&name) {
                return Err(syn::Error::new(key.span(), format!("`{name}` stands here twice: remove one")));
            }
            input.parse::<Token![:]>()?;
            match name.as_str() {
                "namespace" => out.namespace = Some(namespace(input.parse()?)?),
                "version" => out.version = Some(input.parse()?),
                "warm" => out.warm = Some(input.parse()?),
                "tools" => out.tools = tools(input)?,
                _ => {
                    let message = format!("`export!` has no `{name}`: it takes namespace, version, warm and tools");
                    return Err(syn::Error::new(key.span(), message));
                }
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if !seen.iter().any(|name| name == "tools") {
            return Err(input.error("name the tools: `tools: [a, b]`"));
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

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let Export { namespace, version, warm, tools } = syn::parse2(input)?;
    let namespace = namespace.map_or_else(|| quote!(""), |namespace| quote!(#namespace));
    let version = version.map_or_else(|| quote!(::core::env!("CARGO_PKG_VERSION")), |version| quote!(#version));
    let warm =
        warm.map_or_else(|| quote!(::core::option::Option::None), |warm| quote!(::core::option::Option::Some(#warm)));
    let tools =
        tools.iter().map(|tool| quote_spanned!(tool.span()=> <#tool as ::toolsrv::__private::Definition>::TOOL));
    Ok(quote! {
        /// The tools of this module.
        pub static MODULE: ::toolsrv::Module = ::toolsrv::Module::new(#namespace, #version, &[#(#tools),*], #warm);

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
        };
    })
}
