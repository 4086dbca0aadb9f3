// Package words owns how a text is taken apart into the words by which it is
// found: one tokenizer for all scripts, and the function words of a message's
// language, which say nothing about what is meant.
//
// It must not know what is searched for, or where. It imports none of our
// packages.
package words
