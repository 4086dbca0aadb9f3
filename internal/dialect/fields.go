package dialect

import "slices"

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
	fieldThread
	fieldCount
)

// fieldNames are the names of the fields that a request has at its top.
var fieldNames = [fieldCount]string{
	FieldUser: "user", FieldSafetyIdentifier: "safety_identifier", FieldPromptCacheKey: "prompt_cache_key", FieldSessionID: "session_id", FieldLiteLLMSessionID: "litellm_session_id",
	FieldMetadata: "metadata", FieldLiteLLMMetadata: "litellm_metadata", FieldClientMetadata: "client_metadata",
	FieldConversation: "conversation", FieldPreviousResponseID: "previous_response_id",
}

func fieldOf(key []byte) Field { return Field(max(0, slices.Index(fieldNames[:], string(key)))) }

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

// Threaded reports whether the provider is to hold the conversation, though its API does not in
// general: a later request may name the answer.
func (c *Conversation) Threaded() bool { return c.Field(fieldThread) != nil }

// HeldElsewhere reports whether the provider holds the earlier messages.
func (c *Conversation) HeldElsewhere() bool {
	return len(c.refs) > 0 || c.Field(FieldPreviousResponseID) != nil || c.Field(FieldConversation) != nil
}
