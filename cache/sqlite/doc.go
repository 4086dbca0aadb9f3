// Package sqlite opens SQLite files the way the proxy needs them: durable,
// with one writer that commits in groups, and readers beside it.
//
// It owns the connections and their pragmas, the check that a file is whole and of
// this version, the faults of a file, and the repair of a damaged one (Salvage). It
// must not know what is stored. It imports none of our packages.
package sqlite
