// Package capability calls the host's functions that need a grant. In a guest they are imports; natively, the [double.Host] that a test has put into
// the call answers.
package capability

import (
	"encoding/json"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// failure reads a failure as the host writes it.
func failure(text []byte) *toolsrv.Failure {
	var f struct {
		Code     string          `json:"code"`
		Message  string          `json:"message"`
		ToolCode string          `json:"tool_code"`
		Data     json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Code == "" {
		return Broken("a failure that can't be read: " + string(text))
	}
	return &toolsrv.Failure{Code: f.Code, Message: f.Message, ToolCode: f.ToolCode, Data: f.Data}
}

// Broken is the failure of an answer that breaks the contract of host and guest.
func Broken(how string) *toolsrv.Failure {
	return &toolsrv.Failure{Code: "unavailable", Message: "the host's answer breaks the contract: " + how}
}
