package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/capture/distil"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

// schemaSteps are the versions of the schema in Postgres. During an update, replicas of the
// previous version use a new schema, so a step only adds tables and columns.
func schemaSteps() []string {
	return []string{cache.PostgresSchema() + ledger.PostgresSchema + embedded.PostgresSchema, cache.RatesSchema}
}

// openPostgres connects to the Postgres that replicas share. It returns nil if there is none. now
// returns the latest configuration.
func openPostgres(cfg *config.Config, now func() *config.Config, log *slog.Logger) (*postgres.Server, error) {
	if cfg.State.Backend != "postgres" {
		return nil, nil
	}
	return postgres.Open(postgres.Options{URL: cfg.State.PostgresURL, Latest: func() string { return now().State.PostgresURL }, Name: telemetry.ProcessName(), Steps: schemaSteps(), Log: log})
}

// memoryIn returns the database of messages, or nil without a server.
func memoryIn(server *postgres.Server) database.DB {
	if server == nil {
		return nil
	}
	return server.DB(false)
}

// leased makes one replica distil facts for all.
type leased struct {
	distil.Batches
	holds atomic.Bool // this replica has the lease
}

// leaseLook is the time between two looks for messages to distil: other replicas store messages
// without waking this one.
const leaseLook = 5 * time.Second

func (l *leased) lease(ctx context.Context, server *postgres.Server) {
	for {
		led, release, err := server.Take(ctx)
		if err != nil {
			return
		}
		l.holds.Store(true)
		<-led.Done()
		l.holds.Store(false)
		release()
	}
}

func (l *leased) Undistilled(ctx context.Context, quiet time.Duration, chars int) (b *graphiti.Batch, next time.Time, err error) {
	if l.holds.Load() {
		b, next, err = l.Batches.Undistilled(ctx, quiet, chars)
	}
	if soon := time.Now().Add(leaseLook); b == nil && (next.IsZero() || next.After(soon)) {
		next = soon
	}
	return b, next, err
}
