// Package postgres connects replicas to the Postgres that they share, as a database.DB.
//
// It owns the connections, the translation of statements, the versions of the schema, outages,
// the changes that replicas announce, and the lease of the replica that works for all. All
// tables are in the schema graphiti_proxy. It must not know the meaning of the data. Of our
// packages it imports cache/database.
//
// Outages: the first failure ends all calls, and each call fails at once until a write
// succeeds, which is tried every 100 ms. A poll every 200 ms finds a server that hangs.
//
// Every write holds a shared lock of its transaction, and Alone an exclusive one.
package postgres
