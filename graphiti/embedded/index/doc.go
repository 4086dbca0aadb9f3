// Package index owns which messages of a group have a word, in memory, and of
// each message a note by which it is ranked without being read: built from what
// the memory holds when a group is first searched, kept up to date with every
// commit, and bounded in bytes.
//
// It must not know where messages are kept, nor what a search shows of them.
// Of our packages it may import budget, which gives back what a build needed.
package index
