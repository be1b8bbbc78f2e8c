module github.com/toolsrv/toolsrv/examples

go 1.24

require github.com/toolsrv/toolsrv/sdk/go v0.1.0

replace github.com/toolsrv/toolsrv/sdk/go => ../sdk/go
