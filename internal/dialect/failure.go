package dialect

import "encoding/json"

// Failure is an error answer of the proxy itself.
type Failure struct {
	Status  int    // of HTTP
	Type    string // the kind of error, in OpenAI's and Anthropic's words
	Code    string // the cause, for programs; empty if there is no further detail
	Message string
}

// OpenAIError returns a failure in OpenAI's format, which with its "type" is also
// Anthropic's. Paths that belong to no dialect get it too.
func OpenAIError(f Failure) []byte {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	d := detail{Message: f.Message, Type: f.Type}
	if f.Code != "" {
		d.Code = &f.Code
	}
	b, _ := json.Marshal(struct { // strings only: cannot fail
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", d})
	return b
}
