package dialect

import (
	"bytes"
	"regexp"
)

// dataURI matches a file within a text, base64 its mark, and imageLines the lines that hold
// only tags around or in place of a picture.
var (
	dataURI    = regexp.MustCompile(`data:[\w.+-]*/[\w.+-]*(?:;[\w=.+-]+)*;base64,[\w+/=-]*`)
	base64     = []byte(";base64,")
	imageLines = regexp.MustCompile(`(?im)^(?:[ \t]*</?(?:image|img)(?:\s[^<>\n]*)?/?>)+[ \t]*(?:\n|$)`)
	imageTag   = regexp.MustCompile(`(?i)</?im(?:ag|g)`)
)

// WithoutMedia returns a text without the placeholders and data of pictures and other
// files: they are no words.
func WithoutMedia(text []byte) []byte {
	if bytes.Contains(text, base64) {
		text = dataURI.ReplaceAll(text, nil)
	}
	if imageTag.Match(text) {
		text = imageLines.ReplaceAll(text, nil)
	}
	return text
}
