// Package sentence computes vectors of sentences that are near each other if the sentences
// mean the same, in 16 languages. It runs the Universal Sentence Encoder, multilingual,
// version 3, on one core, in a few milliseconds and without other software. It owns the
// model's file, which convert.py makes.
package sentence
