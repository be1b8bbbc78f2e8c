use toolsrv::{Error, tool};

/// One.
#[tool(needs(http = ["api.example.com"]))]
fn no_scheme() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(kv = "yes"))]
fn no_boolean() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(secret = ["key"]))]
fn misspelt() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(secrets = ["a/b"]))]
fn no_name() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(tools = ["/convert"], tools = ["convert"]))]
fn no_path() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(files = ["geo", "geo"]))]
fn twice() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(settings = Settings))]
fn settings() -> Result<i64, Error> {
    Ok(1)
}

/// One.
#[tool(needs(kv = true), needs(kv = true))]
fn again() -> Result<i64, Error> {
    Ok(1)
}

toolsrv::export! { tools: [no_scheme, no_boolean, misspelt, no_name, no_path, twice, settings, again] }

fn main() {}
