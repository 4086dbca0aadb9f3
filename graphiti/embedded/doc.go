// Package embedded owns the memory in a file of this process, which finds messages by their
// words and, where those find nothing, by their meaning. The file is also the record of
// the turns of the messages. The package owns the search index in RAM: the places of each
// word in a group, and a note on each message, for ranking it without reading it.
package embedded
