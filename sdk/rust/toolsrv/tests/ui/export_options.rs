mod a {
    toolsrv::export! { namespace: "a//b", tools: [x] }
}

mod b {
    toolsrv::export! { name: "b", tools: [x] }
}

mod c {
    toolsrv::export! { namespace: "c" }
}

mod d {
    toolsrv::export! { tools: [] }
}

mod e {
    toolsrv::export! { tools: [x], tools: [y] }
}

fn main() {}
