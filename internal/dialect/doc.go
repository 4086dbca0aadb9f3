// Package dialect owns the contract of an API's folder (Dialect), the building blocks of
// the parsers and answer readers in those folders, and the code that all APIs share:
// conversations, server-sent events, fingerprints, and the positions at which a block of
// text can be spliced in. It also owns a table of facts about each client: the requests
// that it makes for itself, its additions to a person's messages, and its statements of the
// working directory.
//
// The result of a rule for a text depends on the text alone, so a message that was no turn is
// none when it comes back as history.
package dialect
