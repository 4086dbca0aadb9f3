// Package dialect owns the contract that each LLM API's folder fulfils (Dialect),
// the parts that those folders build their parsers and answer readers from, and what
// all APIs share: conversations, server-sent events, fingerprints, and the places
// where a block of text can be spliced in. It also owns one table of what is known
// about each client: the requests that it makes for itself, what it writes into a
// person's messages, and how it states where it works.
//
// It must not know about memory, HTTP connections, or any single API: each API has
// a folder, and dialect/registry lists them. What a rule says about a text depends
// on the text alone, so a message that was no turn is none when it comes back as
// history. It imports none of our packages.
package dialect
