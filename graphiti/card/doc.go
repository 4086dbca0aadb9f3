// Package card owns the facts that are shown at the beginning of each conversation,
// regardless of its subject: the rules that a person laid down, for a project and for
// themselves, the texts that they asked to remember, and the summaries of conversations. It
// recognises rules by marks in fifteen languages, not by their subject.
//
// It records these when a turn is stored, in any memory. Its lists are read before the first
// answer of each conversation.
package card
