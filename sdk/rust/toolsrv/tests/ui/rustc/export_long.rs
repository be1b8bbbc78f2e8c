use toolsrv::{Error, tool};

/// Return nothing.
#[tool]
fn a_name_that_is_rather_long_for_a_tool() -> Result<(), Error> {
    Ok(())
}

toolsrv::export! { namespace: "a/namespace/of/many/parts/too", tools: [a_name_that_is_rather_long_for_a_tool] }

fn main() {}
