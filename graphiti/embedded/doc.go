// Package embedded owns the memory in a file of this process: messages that are found by
// their words and, with an embeddings endpoint, by their meaning. The file is also the
// record of the turns that they come from. The package owns the index that it searches
// in RAM: which messages of a group have a word, and a note on each message by which it
// is ranked without being read.
//
// It must not know about Graphiti's services, requests, or how messages are made of
// turns. Of our packages it imports graphiti, graphiti/words, capture/ledger (the
// record), cache/sqlite and internal/budget.
package embedded
