use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, ItemFn, Lit, LitStr, Meta, Result};

use crate::about::About;
use crate::needs::Needs;
use crate::signature::Signature;
use crate::{json, names, prose, signature};

/// What stands in `#[tool(…)]`.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    parameters: Option<LitStr>,
    result: Option<LitStr>,
    examples: Vec<Example>,
    about: About,
    needs: Option<Needs>,
}

/// A call of the tool: JSON.
struct Example {
    arguments: LitStr,
    result: Option<LitStr>,
}

impl Options {
    fn read(attribute: TokenStream) -> Result<Self> {
        let mut out = Self::default();
        syn::meta::parser(|meta| out.option(meta)).parse2(attribute)?;
        match &out.result {
            Some(result) if out.parameters.is_none() => Err(Error::new(
                result.span(),
                "the schema of the result goes with that of the arguments: add `parameters`",
            )),
            _ => Ok(out),
        }
    }

    fn option(&mut self, meta: ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            set(&mut self.name, &meta)
        } else if meta.path.is_ident("parameters") {
            set(&mut self.parameters, &meta)
        } else if meta.path.is_ident("result") {
            set(&mut self.result, &meta)
        } else if meta.path.is_ident("example") {
            self.examples.push(Example::read(&meta)?);
            Ok(())
        } else if meta.path.is_ident("needs") {
            if self.needs.is_some() {
                return Err(meta.error("this appears twice: remove one"));
            }
            let needs;
            syn::parenthesized!(needs in meta.input);
            self.needs = Some(Needs::read(&needs, false)?);
            Ok(())
        } else if self.about.option(&meta)? {
            Ok(())
        } else {
            Err(meta.error(
                "`#[tool]` takes `name`, `title`, `annotations`, `icon`, `needs`, `parameters`, `result` and `example`",
            ))
        }
    }

    /// Returns the members of the tool's part of the manifest that are about it: JSON with commas between.
    fn about(&self) -> String {
        let mut about = self.about.members();
        if let Some(needs) = self.needs.as_ref().and_then(Needs::to_json) {
            if !about.is_empty() {
                about.push(',');
            }
            about.push_str(&format!(r#""needs":{needs}}}"#));
        }
        about
    }
}

impl Example {
    fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
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
        let arguments: LitStr =
            arguments.ok_or_else(|| meta.error("an example needs arguments: `arguments = r#\"{}\"#`"))?;
        check_json(&arguments, &arguments.value(), true)?;
        if let Some(result) = &result {
            check_json(result, &result.value(), false)?;
        }
        Ok(Self { arguments, result })
    }

    /// Returns the example as the manifest has it.
    fn to_json(&self) -> String {
        let result = self.result.as_ref().map(|result| format!(r#","result":{}"#, result.value())).unwrap_or_default();
        format!(r#"{{"arguments":{}{result}}}"#, self.arguments.value())
    }
}

/// Reads the text of an option, once.
fn set(option: &mut Option<LitStr>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if option.is_some() {
        return Err(meta.error("this appears twice: remove one"));
    }
    *option = Some(meta.value()?.parse()?);
    Ok(())
}

/// Refuses a text that is not valid JSON, at the place where the author wrote it.
fn check_json(at: &LitStr, text: &str, object: bool) -> Result<()> {
    match json::fault(text) {
        Some(fault) => Err(Error::new(at.span(), format!("this is not valid JSON: {fault}"))),
        None if object && !json::is_object(text) => Err(Error::new(at.span(), "this is not a JSON object: `{…}`")),
        None => Ok(()),
    }
}

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let message = "`#[tool]` stands on a function: `fn name(arguments: A) -> Result<T, Error>`";
        return Error::new_spanned(item, message).into_compile_error();
    };
    let ident = &function.sig.ident;
    if names::is_primitive(&ident.to_string()) {
        // No type of that name is made: it would hide that of the language, and each use of it be an error.
        let message = format!(
            "`{ident}` is a type of the language: give the function another name, and the tool this one with \
             `#[tool(name = \"{ident}\")]`"
        );
        let error = Error::new(ident.span(), message).into_compile_error();
        return quote!(#function #error);
    }
    let definition = define(attribute, &function).unwrap_or_else(|error| {
        // The rest goes on without a tool, so that what is wrong is the only error.
        let error = error.into_compile_error();
        quote! {
            #error

            impl ::toolsrv::__private::Definition for #ident {
                const TOOL: ::toolsrv::Tool = ::toolsrv::Tool::broken(::core::stringify!(#ident));
                const MANIFEST: ::core::option::Option<&'static str> = ::core::option::Option::None;
            }
        }
    });
    let visibility = &function.vis;
    // The type has the function's name, so that a path names both: functions and types don't share their names.
    quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #ident {}

        #definition
    }
}

/// Returns what makes a tool of the type with the function's name.
fn define(attribute: TokenStream, function: &ItemFn) -> Result<TokenStream> {
    let options = Options::read(attribute)?;
    let ident = &function.sig.ident;
    let name = name(&options, function)?;
    let description = description(function)?;
    let Signature { call, arguments, output } = signature::read(function)?;
    let (parameters, result, manifest) = match &options.parameters {
        Some(parameters) => written(&options, parameters, &name.value(), &description)?,
        None => {
            let parameters = match arguments {
                Some(arguments) => {
                    quote_spanned!(arguments.span()=> ::toolsrv::__private::Schema::of_arguments::<#arguments>())
                }
                None => quote!(::toolsrv::__private::Schema::NO_ARGUMENTS),
            };
            (
                parameters,
                quote_spanned!(output.span()=> ::toolsrv::__private::Schema::of_result::<#output>()),
                quote!(::core::option::Option::None),
            )
        }
    };
    // Names that no author gives: a tool may be called `call`.
    let call = call.then(|| quote!(__call,));
    let about = options.about();
    let (pattern, passed) = match arguments {
        Some(_) => (quote!(__arguments), quote!(__arguments)),
        None => (quote!(_), quote!()),
    };
    let arguments = arguments.map_or_else(|| quote!(::toolsrv::__private::NoArguments), |arguments| quote!(#arguments));
    let examples = options.examples.iter().map(|Example { arguments, result }| {
        let result = match result {
            Some(result) => quote!(::core::option::Option::Some(#result)),
            None => quote!(::core::option::Option::None),
        };
        quote!((#arguments, #result))
    });
    Ok(quote! {
        impl ::toolsrv::__private::Definition for #ident {
            const TOOL: ::toolsrv::Tool = ::toolsrv::Tool::new(
                #name,
                #description,
                #about,
                #parameters,
                #result,
                &[#(#examples),*],
                |__call, __input| {
                    ::toolsrv::__private::run::<#arguments, #output>(__input, |#pattern| #ident(#call #passed))
                },
            );
            const MANIFEST: ::core::option::Option<&'static str> = #manifest;
        }
    })
}

/// Returns the schemas of arguments and result that the author wrote, and the tool's part of the manifest made of them.
fn written(
    options: &Options,
    parameters: &LitStr,
    name: &str,
    description: &str,
) -> Result<(TokenStream, TokenStream, TokenStream)> {
    let read = |file: &LitStr| -> Result<(String, TokenStream)> {
        let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(file.value());
        let refuse = |error: &dyn std::fmt::Display| {
            Error::new(file.span(), format!("{} in the folder of Cargo.toml: {error}", file.value()))
        };
        let text = std::fs::read_to_string(&path).map_err(|error| refuse(&error))?;
        check_json(file, &text, true).map_err(|error| refuse(&error))?;
        let path = path.to_str().ok_or_else(|| refuse(&"the path is not UTF-8"))?;
        // Included, so that the compiler sees when the file changes.
        Ok((text, quote!(::toolsrv::__private::Schema::Written(::core::include_str!(#path)))))
    };
    let (text, parameters) = read(parameters)?;
    let mut about = options.about();
    if !about.is_empty() {
        about.push(',');
    }
    let mut manifest = format!(
        r#"{{"name":{},"description":{},{about}"parameters":{text}"#,
        json::quote(name),
        json::quote(description)
    );
    let result = match &options.result {
        Some(result) => {
            let (text, result) = read(result)?;
            manifest.push_str(&format!(r#","result":{text}"#));
            result
        }
        None => quote!(::toolsrv::__private::Schema::Unknown),
    };
    if !options.examples.is_empty() {
        let examples: Vec<String> = options.examples.iter().map(Example::to_json).collect();
        manifest.push_str(&format!(r#","examples":[{}]"#, examples.join(",")));
    }
    manifest.push('}');
    Ok((parameters, result, quote!(::core::option::Option::Some(#manifest))))
}

/// Returns the name by which clients call the tool.
fn name(options: &Options, function: &ItemFn) -> Result<LitStr> {
    let ident = &function.sig.ident;
    let (name, hint) = match &options.name {
        Some(name) => (name.clone(), ""),
        None => (
            LitStr::new(ident.to_string().trim_start_matches("r#"), ident.span()),
            "; or give it one: `#[tool(name = \"…\")]`",
        ),
    };
    match names::fault(&name.value()) {
        Some(fault) => Err(Error::new(name.span(), format!("{fault}{hint}"))),
        None => Ok(name),
    }
}

/// Returns the doc comment of a tool.
fn description(function: &ItemFn) -> Result<String> {
    let lines: Vec<String> = function.attrs.iter().filter_map(doc_line).collect();
    let text = prose::flowed(lines.join("\n").trim());
    if text.is_empty() {
        let message = "a tool needs a description: write a doc comment (`/// Count words.`) that says what it does and when \
                       to use it";
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
