package mcp

import (
	"net/http"
	"strconv"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
)

// discover answers server/discover.
func (x *exchange) discover() {
	x.open()
	x.out = append(x.out, `"result":{"resultType":"complete",`...)
	x.out = append(x.out, x.door.discovered...)
	x.close(rpc.FreshDiscover)
	x.Send(http.StatusOK, x.out)
}

// list answers tools/list.
func (x *exchange) list() *rpc.Fault {
	cursor, wrong := x.message.PageCursor()
	if wrong != nil {
		return wrong
	}
	page, err := x.view().List(cursor, toolset.Modern)
	if err != nil {
		x.answerError(err)
		return nil
	}
	x.open()
	x.out = append(x.out, `"result":{"resultType":"complete","tools":`...)
	head := len(x.out)
	if page.Next != "" {
		x.out = append(append(append(x.out, `,"nextCursor":"`...), page.Next...), '"')
	}
	x.close(rpc.FreshList)
	x.Send(http.StatusOK, x.out[:head], page.Tools, x.out[head:])
	return nil
}

// close ends a result that clients may keep for a time.
func (x *exchange) close(fresh int64) {
	scope := rpc.Scope(x.Call().Principal == wasmtools.Everybody())
	x.out = strconv.AppendInt(append(x.out, `,"ttlMs":`...), fresh, 10)
	x.out = append(append(append(x.out, `,"cacheScope":"`...), scope...), `","_meta":{`...)
	x.out = append(append(x.out, x.door.meta...), "}}}"...)
}
