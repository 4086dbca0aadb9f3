package inject

import "unicode"

// Tokens returns about how many tokens a text has: a character of Chinese, Japanese or
// Korean counts as one, and of any other script as a quarter. Tokenizers differ, and are
// the models' own; the estimate is for figures that people compare.
func Tokens(text string) int {
	wide, others := 0, 0
	for _, r := range text {
		if r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			wide++
		} else {
			others++
		}
	}
	return wide + (others+charsPerToken-1)/charsPerToken
}
