use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, ItemFn, Lit, LitStr, Meta, Result, ReturnType, Safety, Type};

use crate::names;

/// What stands in `#[tool(…)]`.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    parameters: Option<LitStr>,
    examples: Vec<Example>,
}

struct Example {
    arguments: LitStr,
    result: Option<LitStr>,
}

impl Options {
    fn parse(&mut self, meta: ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            set(&mut self.name, &meta)?;
            match &self.name {
                Some(name) => names::fault(&name.value()).map_or(Ok(()), |fault| Err(Error::new(name.span(), fault))),
                None => Ok(()),
            }
        } else if meta.path.is_ident("parameters") {
            set(&mut self.parameters, &meta)
        } else if meta.path.is_ident("example") {
            let (mut arguments, mut result) = (None, None);
            meta.parse_nested_meta(|inner| {
                if inner.path.is_ident("arguments") {
                    set(&mut arguments, &inner)
                } else if inner.path.is_ident("result") {
                    set(&mut result, &inner)
                } else {
                    Err(inner.error("an example has `arguments` and `result`"))
                }
            })?;
            let arguments =
                arguments.ok_or_else(|| meta.error("an example needs arguments: `arguments = r#\"{}\"#`"))?;
            self.examples.push(Example { arguments, result });
            Ok(())
        } else {
            Err(meta.error("`#[tool]` takes `name`, `parameters` and `example`"))
        }
    }
}

/// Reads the text of an option, once.
fn set(option: &mut Option<LitStr>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if option.is_some() {
        return Err(meta.error("this stands here twice: remove one"));
    }
    *option = Some(meta.value()?.parse()?);
    Ok(())
}

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut options = Options::default();
    syn::meta::parser(|meta| options.parse(meta)).parse2(attribute)?;
    let function: ItemFn = syn::parse2(item).map_err(|e| {
        Error::new(e.span(), "`#[tool]` stands on a function: `fn name(arguments: A) -> Result<T, Error>`")
    })?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let name = match options.name {
        Some(name) => name,
        None => LitStr::new(ident.to_string().trim_start_matches("r#"), ident.span()),
    };
    if let Some(fault) = names::fault(&name.value()) {
        return Err(Error::new(name.span(), format!("{fault}; or give one: `#[tool(name = \"…\")]`")));
    }
    let description = description(&function)?;
    let Signature { call, arguments, output } = signature(&function)?;
    let no_arguments = arguments.is_none();
    let (pattern, passed) = match &arguments {
        Some(_) => (quote!(arguments), quote!(arguments)),
        None => (quote!(_), quote!()),
    };
    let call = call.then(|| quote!(call,));
    let arguments = arguments.map_or_else(|| quote!(::toolsrv::__private::NoArguments), |arguments| quote!(#arguments));
    let parameters = match options.parameters {
        None if no_arguments => quote!(NONE),
        Some(file) => quote_spanned!(file.span()=> Written(::core::include_str!(#file))),
        None => quote_spanned!(arguments.span()=> of::<#arguments>()),
    };
    let examples = options.examples.iter().map(|Example { arguments, result }| {
        let result = result
            .as_ref()
            .map_or_else(|| quote!(::core::option::Option::None), |r| quote!(::core::option::Option::Some(#r)));
        quote!((#arguments, #result))
    });
    // The type has the function's name, so that a path names both: functions and types don't share their names.
    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #ident {}

        impl ::toolsrv::__private::Definition for #ident {
            const TOOL: ::toolsrv::Tool = ::toolsrv::Tool::new(
                #name,
                #description,
                ::toolsrv::__private::Parameters::#parameters,
                <#output as ::toolsrv::__private::Outcome>::schema,
                &[#(#examples),*],
                |call, input| ::toolsrv::__private::run::<#arguments, #output>(input, |#pattern| #ident(#call #passed)),
            );
        }
    })
}

/// Returns the doc comment of a tool.
fn description(function: &ItemFn) -> Result<String> {
    let lines: Vec<String> = function.attrs.iter().filter_map(doc_line).collect();
    let text = lines.join("\n").trim().to_string();
    if text.is_empty() {
        let message = "a tool needs a description: write a doc comment (`/// Count words.`) that says what it does and when to use it";
        return Err(Error::new(function.sig.ident.span(), message));
    }
    Ok(text)
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else { return None };
    let text = meta.path.is_ident("doc").then(|| text.value())?;
    Some(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_string())
}

/// What a tool takes and returns.
struct Signature<'a> {
    call: bool,
    arguments: Option<&'a Type>,
    output: &'a Type,
}

fn signature(function: &ItemFn) -> Result<Signature<'_>> {
    let sig = &function.sig;
    let refuse = |span: Span, message: &str| Err(Error::new(span, message));
    if let Some(keyword) = sig.asyncness {
        return refuse(keyword.span(), "a tool is no `async` function: there is nothing to wait for in the sandbox");
    }
    if let Safety::Unsafe(keyword) = &sig.safety {
        return refuse(keyword.span(), "a tool is no `unsafe` function: the server calls it");
    }
    if !sig.generics.params.is_empty() {
        return refuse(sig.generics.span(), "a tool has no generic parameters: name the types");
    }
    let mut parameters = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(parameter) => parameters.push(parameter.ty.as_ref()),
            FnArg::Receiver(receiver) => return refuse(receiver.span(), "a tool is a function of its own, no method"),
        }
    }
    let call = parameters.first().is_some_and(|first| matches!(first, Type::Reference(_)));
    let mut rest = parameters.into_iter().skip(usize::from(call));
    let arguments = rest.next();
    if let Some(more) = rest.next() {
        return refuse(
            more.span(),
            "a tool takes one struct of arguments, and `&Call` before it: put this into the struct",
        );
    }
    if let Some(reference @ Type::Reference(_)) = arguments {
        return refuse(reference.span(), "a tool owns its arguments: take the struct and no reference");
    }
    match &sig.output {
        ReturnType::Type(_, output) => Ok(Signature { call, arguments, output }),
        ReturnType::Default => refuse(sig.ident.span(), "a tool returns a `Result<T, toolsrv::Error>`"),
    }
}
