// Package dialect owns what a wire format is: it reads a conversation out of a
// request body without decoding it, tells what a person wrote from what a
// client put there, and knows where a block of text can be spliced in.
//
// It must not know of memory or of HTTP connections. It imports none of our
// packages.
package dialect
