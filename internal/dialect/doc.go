// Package dialect owns what a wire format is: the contract of an API's folder
// (Dialect), what its parser and its answer reader are made of, and what is the
// same in all of them: conversations, server-sent events, fingerprints, and where a
// block of text can be spliced in. It owns what is known of clients too, in one
// table with an entry for each: the requests that they make for themselves, what
// they write into a person's messages, and how they state where they work.
//
// It must not know of memory, of HTTP connections, or of one API: those stand in
// its folders, which dialect/registry lists. What a rule says of a text depends on
// the text alone: what was no turn is none when it comes back as history. It imports
// none of our packages.
package dialect
