module github.com/toolsrv/toolsrv/deploy

go 1.26.0
