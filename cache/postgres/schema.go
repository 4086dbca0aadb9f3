package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// base creates the tables of this package.
const base = `
CREATE TABLE IF NOT EXISTS version (version int NOT NULL, readable_from int NOT NULL);
CREATE TABLE IF NOT EXISTS changes (n bigint NOT NULL);
CREATE TABLE IF NOT EXISTS replicas (name text PRIMARY KEY, applied bigint NOT NULL, seen_at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS lease (holder text NOT NULL, token bigint NOT NULL, until timestamptz NOT NULL);
INSERT INTO version SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM version);
INSERT INTO changes SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM changes);
INSERT INTO lease SELECT '', 0, 'epoch' WHERE NOT EXISTS (SELECT 1 FROM lease);
`

// migrate runs the steps that the schema lacks, in one transaction of one replica. A schema that
// a newer version made is used if that version allows it.
func (s *Server) migrate(ctx context.Context, conn *pgx.Conn) error {
	var version, from int
	err := conn.QueryRow(ctx, "SELECT CASE WHEN to_regclass('"+schemaName+".version') IS NULL THEN -1 ELSE 0 END").Scan(&version)
	if err != nil {
		return err
	}
	if version == 0 {
		if version, from, err = s.versions(ctx, conn); err != nil {
			return err
		}
	}
	if version >= len(s.steps) {
		return s.readable(version, from)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
	_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(26480, 2); CREATE SCHEMA IF NOT EXISTS "+schemaName+"; SET LOCAL search_path = "+schemaName+";"+base)
	if err != nil {
		return err
	}
	if version, from, err = s.versions(ctx, tx); err != nil {
		return err
	}
	for n := version; n < len(s.steps); n++ {
		if _, err := tx.Exec(ctx, s.steps[n]); err != nil {
			return fmt.Errorf("step %d of the schema: %w", n+1, err)
		}
	}
	if version < len(s.steps) {
		if _, err := tx.Exec(ctx, "UPDATE version SET version = $1", len(s.steps)); err != nil {
			return err
		}
	}
	if err := s.readable(max(version, len(s.steps)), from); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// versions returns the version of the schema, and the oldest version of the proxy that can use
// it.
func (s *Server) versions(ctx context.Context, q querier) (version, from int, err error) {
	err = q.QueryRow(ctx, "SELECT version, readable_from FROM "+schemaName+".version").Scan(&version, &from)
	return version, from, err
}

// readable returns a lasting Fault if this program cannot use the schema.
func (s *Server) readable(version, from int) error {
	if from <= len(s.steps) {
		return nil
	}
	return &database.Fault{Path: setting, Kind: database.Other, Since: time.Now(),
		Err:    fmt.Errorf("the schema has version %d, which needs a proxy of schema %d; this one has %d", version, from, len(s.steps)),
		Remedy: "update this proxy to the version of the other replicas"}
}
