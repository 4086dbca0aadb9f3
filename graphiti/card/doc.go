// Package card owns what stands at the beginning of conversations, whether or not
// a word fits: which rules a person laid down, for a project and for themselves,
// what they asked to have remembered, and what summaries say of conversations. It
// knows marks of rules in fifteen languages, and nothing of what they are about.
//
// It notes that when a turn is kept, whichever memory keeps it, and must not know
// how it is shown, nor ask a memory: its lists are read before each first answer
// of a conversation. Of our packages it may import capture/ledger, graphiti and
// graphiti/words.
package card
