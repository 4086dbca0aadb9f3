// Package embedded owns the memory in a file of this process: messages that are found by
// their words and, with an embeddings endpoint, by their meaning. It owns the index that
// it searches in RAM: which messages of a group have a word, and a note on each message by
// which it is ranked without being read.
//
// It must not know about Graphiti's services, requests or turns. Of our packages it
// imports graphiti, graphiti/words, cache/sqlite, internal/budget and its own takeover.
package embedded
