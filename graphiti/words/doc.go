// Package words owns the splitting of texts into the words for searches: one tokenizer for
// all scripts, and the function words of each language, which carry no meaning of their
// own.
package words
