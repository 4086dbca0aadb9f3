// Package card owns the facts that are shown at the beginning of each conversation,
// whatever it is about: the rules that a person laid down, for a project and for
// themselves, what they asked to have remembered, and what summaries say about
// conversations. It recognises rules by marks in fifteen languages, not by their subject.
//
// It notes these when a turn is kept, in any memory. It must not know how they are shown,
// nor call a memory: its lists are read before the first answer of each conversation. Of
// our packages it imports capture/ledger, graphiti and graphiti/words.
package card
