package dialect

import "bytes"

// maxID bounds an id, in bytes.
const maxID = 64

// IDBehind is the id that stands in a text behind a mark; empty where there is
// none, or where there are different ones: a file that is quoted may hold one.
func IDBehind(text []byte, mark string) (id string) {
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
