package inject

import (
	"bytes"
	"math"
	"unicode"
)

// charsPerToken is the approximate number of characters per token.
const charsPerToken = 4

// windows lists context windows in tokens by model name prefix; the first match counts. They
// may be outdated, but only limit blocks in small windows.
var windows = []struct {
	prefix string
	tokens int
}{
	{"gpt-4.1", 1_000_000}, {"gpt-5", 400_000}, {"gpt-4o", 128_000}, {"gpt-4-turbo", 128_000}, {"gpt-4", 8_192}, {"gpt-3.5", 16_000},
	{"o1", 200_000}, {"o3", 200_000}, {"o4", 200_000}, {"claude", 200_000}, {"gemini", 1_000_000},
	{"llama2", 4_096}, {"llama3.1", 128_000}, {"llama3.2", 128_000}, {"llama3.3", 128_000}, {"llama3", 8_192},
	{"phi", 4_096}, {"gemma", 8_192}, {"tinyllama", 2_048}, {"mistral", 32_000}, {"mixtral", 32_000}, {"qwen", 32_000}, {"deepseek", 64_000},
}

// roomIn returns the number of characters that a block may use in a model's context window,
// without limit if share is 0. others is the window of unlisted models, in tokens. It
// ignores a vendor prefix of the model name.
func roomIn(model []byte, share float64, others int) int {
	if share <= 0 {
		return math.MaxInt
	}
	name := bytes.ToLower(bytes.Trim(model, `"`))
	if i := bytes.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	tokens := others
	for _, w := range windows {
		if bytes.HasPrefix(name, []byte(w.prefix)) {
			tokens = w.tokens
			break
		}
	}
	return int(share * charsPerToken * float64(tokens))
}

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
