package dialect

// Field is a member of a request outside the messages that may name the person or the
// place.
type Field uint8

// The fields that a Conversation records.
const (
	fieldNone Field = iota
	FieldUser
	FieldSafetyIdentifier
	FieldPromptCacheKey
	FieldSessionID
	FieldLiteLLMSessionID
	FieldMetadata
	FieldLiteLLMMetadata
	FieldClientMetadata
	FieldConversation
	FieldPreviousResponseID
	fieldFormat // of the answer, if it is a data format
	fieldCount
)

func fieldOf(key []byte) Field {
	switch string(key) {
	case "user":
		return FieldUser
	case "safety_identifier":
		return FieldSafetyIdentifier
	case "prompt_cache_key":
		return FieldPromptCacheKey
	case "session_id":
		return FieldSessionID
	case "litellm_session_id":
		return FieldLiteLLMSessionID
	case "metadata":
		return FieldMetadata
	case "litellm_metadata":
		return FieldLiteLLMMetadata
	case "client_metadata":
		return FieldClientMetadata
	case "conversation":
		return FieldConversation
	case "previous_response_id":
		return FieldPreviousResponseID
	}
	return fieldNone
}

// maxField bounds a field's value, in bytes; longer ones are ignored.
const maxField = 16 << 10

// Field returns the raw JSON value of a field; nil if it is absent or null.
func (c *Conversation) Field(f Field) []byte {
	if v := c.fields[f]; v.End > 0 {
		if raw := c.body[v.Start:v.End]; string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// maxReferences bounds the references that References passes to its function.
const maxReferences = 32

// References calls f with the raw ids of the newest items that the request refers to and
// the provider holds, newest first.
func (c *Conversation) References(f func(id []byte)) {
	for i := len(c.refs) - 1; i >= max(0, len(c.refs)-maxReferences); i-- {
		f(c.body[c.refs[i].Start:c.refs[i].End])
	}
}

// HeldElsewhere reports whether the provider holds the earlier messages.
func (c *Conversation) HeldElsewhere() bool {
	return len(c.refs) > 0 || c.Field(FieldPreviousResponseID) != nil || c.Field(FieldConversation) != nil
}
