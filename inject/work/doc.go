// Package work makes short records of what an agent did, from its tool calls and their
// results: commands with their outcomes, changed files, errors and their cures, open tasks.
// It has no tables of clients and does no I/O. Its input is foreign text; callers redact it
// first, and treat every string of a record as foreign.
package work
