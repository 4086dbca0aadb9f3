package dialect

import "bytes"

// maxID bounds an id, in bytes.
const maxID = 64

// idBehind returns the id that follows a mark in a text. It returns "" when there is
// none, or when there are different ones: a quoted file may hold one.
func idBehind(text []byte, mark string) (id string) {
	for {
		i := bytes.Index(text, []byte(mark))
		if i < 0 {
			return id
		}
		text = text[i+len(mark):]
		n := 0
		for n < len(text) && n <= maxID && isIDByte(text[n]) {
			n++
		}
		switch found := string(text[:n]); {
		case n == 0 || n > maxID:
		case id != "" && id != found:
			return ""
		default:
			id = found
		}
	}
}

func isIDByte(c byte) bool {
	return c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
