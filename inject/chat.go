package inject

// Chat reads the Chat Completions API: POST …/chat/completions.
type Chat struct{}
