// Package dialect owns what a wire format is: the contract of an API's folder
// (Dialect), what its parser and its answer reader are made of, and what is the
// same in all of them: conversations, what a person wrote and what a client put
// there, fingerprints, and where a block of text can be spliced in.
//
// It must not know of memory, of HTTP connections, or of one API: those stand in
// its folders, which dialect/registry lists. Of our packages it imports
// dialect/place only.
package dialect
