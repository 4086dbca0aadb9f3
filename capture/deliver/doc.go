// Package deliver owns the way of a turn from pending to delivered (design.md).
// It must not know how turns are stored: a Ledger stands for that. Of our
// packages it may import graphiti. It is not in force yet, see docs/adr/0001.
package deliver
