package dialect

import "slices"

// Insert is one piece of text to be spliced into a body.
type Insert struct {
	At   int    // offset in the body from the client
	Text []byte // JSON, ready to be copied
}

// Splice appends to dst the pieces of body with the inserts between them, which are in
// ascending order. No other function adds bytes to a request.
func Splice(dst [][]byte, body []byte, inserts []Insert) [][]byte {
	at := 0
	for i := range inserts {
		dst = append(dst, body[at:inserts[i].At], inserts[i].Text)
		at = inserts[i].At
	}
	return append(dst, body[at:])
}

// Insert returns the insert that puts block before message i's text. It is valid until c is
// reused for another body.
func (c *Conversation) Insert(i int, block string) Insert {
	m := &c.Messages[i]
	from := len(c.inserts)
	text := slices.Grow(c.inserts, len(block)+len(block)/16+48)
	if m.Form != FormString {
		text = append(text, m.Form...)
	}
	text = append(appendJSON(text, block), `\n\n`...)
	if m.Form != FormString {
		text = append(text, `"},`...)
	}
	c.inserts = text
	return Insert{At: m.At, Text: text[from:len(text):len(text)]}
}
