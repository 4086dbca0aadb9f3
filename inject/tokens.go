package inject

import "unicode"

// Tokens estimates the number of tokens in a text. A Chinese, Japanese or Korean character
// counts as one token, others as a quarter. Tokenizers differ by model; the estimate is for
// comparisons.
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
