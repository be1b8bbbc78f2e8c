package capability

import "testing"

func TestFailure(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, code, message, toolCode, data string }{
		{`{"code":"timeout","message":"It took too long."}`, "timeout", "It took too long.", "", ""},
		{`{"code":"tool_error","message":"No.","tool_code":"no","data":[1]}`, "tool_error", "No.", "no", "[1]"},
		{`{}`, "unavailable", "the host's answer breaks the contract: a failure that can't be read: {}", "", ""},
		{``, "unavailable", "the host's answer breaks the contract: a failure that can't be read: ", "", ""},
	}
	for _, test := range tests {
		f := failure([]byte(test.text))
		if f.Code != test.code || f.Message != test.message || f.ToolCode != test.toolCode || string(f.Data) != test.data {
			t.Errorf("%s: got %+v", test.text, f)
		}
	}
}
