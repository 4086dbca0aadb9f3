// Package embedded owns the memory in a file of this process: messages, found
// again by their words, and with an embeddings endpoint by what they mean.
//
// It must not know Graphiti's services, requests or turns. Of our packages it
// may import graphiti and cache/sqlite.
package embedded
