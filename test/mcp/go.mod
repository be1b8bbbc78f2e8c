module github.com/toolsrv/toolsrv/test/mcp

go 1.26.0
