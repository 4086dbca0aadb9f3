// Package sqlite opens SQLite files the way the proxy needs them: durable,
// with one writer that commits in groups, and readers beside it.
//
// It owns the connection, its pragmas and its migrations. It must not know
// what is stored. It imports none of our packages.
package sqlite
