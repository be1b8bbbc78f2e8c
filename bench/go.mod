module github.com/toolsrv/toolsrv/bench

go 1.26.0

require github.com/toolsrv/toolsrv v0.0.0

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/julienschmidt/httprouter v1.3.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // indirect
	github.com/tetratelabs/wazero v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/toolsrv/toolsrv => ../
