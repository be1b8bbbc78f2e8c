module github.com/toolsrv/toolsrv/sdk/go

go 1.24
