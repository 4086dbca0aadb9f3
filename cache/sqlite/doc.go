// Package sqlite opens SQLite files for the proxy: durable, with one writer that commits in
// groups, and concurrent readers.
//
// It owns the connections and their pragmas, the check that a file is whole and of this
// version, the faults of a file, and the repair of a damaged one (Salvage). It must not know
// the meaning of the data. It imports none of our packages.
package sqlite
