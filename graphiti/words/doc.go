// Package words owns how a text is split into the words by which it is found: one
// tokenizer for all scripts, and the function words of each language, which carry no
// meaning of their own.
//
// It must not know what is searched for, or where. It imports none of our packages.
package words
