use quote::ToTokens;
use syn::{Error, FnArg, ItemFn, Result, ReturnType, Safety, Type};

/// What a tool takes and returns.
pub(crate) struct Signature<'a> {
    pub(crate) call: bool,
    pub(crate) arguments: Option<&'a Type>,
    pub(crate) output: &'a Type,
}

/// Returns what a tool takes and returns, or what is wrong with it.
pub(crate) fn read(function: &ItemFn) -> Result<Signature<'_>> {
    let sig = &function.sig;
    let refuse = |at: &dyn ToTokens, message: &str| Err(Error::new_spanned(at.to_token_stream(), message));
    if let Some(keyword) = sig.asyncness {
        return refuse(&keyword, "a tool is not an `async` function: there is nothing to wait for in the sandbox");
    }
    if let Safety::Unsafe(keyword) = &sig.safety {
        return refuse(&keyword, "a tool is not an `unsafe` function: the server calls it");
    }
    if !sig.generics.params.is_empty() {
        return refuse(&sig.generics, "a tool has no generic parameters: name the types");
    }
    let mut parameters = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(parameter) => parameters.push(parameter.ty.as_ref()),
            FnArg::Receiver(receiver) => return refuse(receiver, "a tool is a free function, not a method"),
        }
    }
    let call = match parameters.first() {
        Some(Type::Reference(first)) if first.mutability.is_some() || !is_named(&first.elem) => {
            return refuse(first, "a tool owns its arguments: take a struct, and before it nothing but `&Call`");
        }
        Some(Type::Reference(_)) => true,
        _ => false,
    };
    let mut rest = parameters.into_iter().skip(usize::from(call));
    let arguments = rest.next();
    if let Some(more) = rest.next() {
        return refuse(more, "a tool takes one struct of arguments, and `&Call` before it: put this into the struct");
    }
    if let Some(reference @ Type::Reference(_)) = arguments {
        return refuse(reference, "a tool owns its arguments: take the struct and no reference");
    }
    match &sig.output {
        ReturnType::Type(_, output) => Ok(Signature { call, arguments, output }),
        ReturnType::Default => refuse(&sig.ident, "a tool returns a `Result<T, toolsrv::Error>`"),
    }
}

/// Reports whether a type could be that of a call. What it is only the compiler knows.
fn is_named(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if !path.path.is_ident("str") && !path.path.is_ident("String"))
}
