// Package sqlite opens SQLite files for the proxy: durable, with one writer that commits in
// groups, and concurrent readers.
//
// It owns the connections and their pragmas, the check that a file is whole and of this
// version, the faults of a file, and the repair of a damaged one (Salvage).
package sqlite
