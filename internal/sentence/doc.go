// Package sentence computes vectors of sentences that are near each other if the sentences
// mean the same. It runs the Universal Sentence Encoder, multilingual, version 3, for 16
// languages, whose file convert.py makes, or multilingual-e5-small, for a hundred, from a file
// that is not in the program. Either runs on one core, in milliseconds and without other
// software.
package sentence
