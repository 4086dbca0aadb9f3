// Package sentence computes vectors of sentences that are near each other if the sentences
// mean the same. It runs the Universal Sentence Encoder, multilingual, version 3, for 16
// languages, and multilingual-e5-small, for a hundred, whose files convert.py and
// convert_e5.py make. Both run on one core, in milliseconds and without other software.
package sentence
