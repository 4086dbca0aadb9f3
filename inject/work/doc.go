// Package work owns the short records of an agent's work, made from its tool calls and their
// results: commands with their outcomes, changed files, open tasks. It has no tables of
// clients and no I/O. Its input is foreign text, so callers treat every string of a record as
// foreign.
package work
