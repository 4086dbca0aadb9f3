package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
)

const (
	// followEvery is the interval between reads of new decisions and sessions of other replicas.
	// A read begins followOverlap before the newest record, because a record may be committed
	// after a newer one, and clocks differ. The first read of a process begins followSince ago.
	followEvery   = time.Second
	followOverlap = 10 * time.Second
	followSince   = 10 * time.Minute

	// keepWithin bounds the storing of a decision without a deadline, and answerWithin the wait
	// for the answer after a deadline.
	keepWithin   = time.Second
	answerWithin = time.Second
)

// followed are the kinds of records that a replica reads before they are needed, to repeat the
// blocks of others during an outage.
var followed = []*kind{decisionKind, linkKind}

// PostgresSchema returns the statements that create the tables in Postgres.
func PostgresSchema() (schema string) {
	for _, k := range kinds {
		schema += fmt.Sprintf("CREATE TABLE %s (list text NOT NULL, key bytea NOT NULL, born bigint NOT NULL, value bytea NOT NULL, scopes text NOT NULL, PRIMARY KEY (list, key));\n", k.name)
	}
	for _, k := range followed {
		schema += fmt.Sprintf("CREATE INDEX ON %s (born);\n", k.name)
	}
	return schema
}

// Share returns the state that replicas share in Postgres. Decisions, sessions and snapshots
// expire ttl after they were written. Close does not close the server.
func Share(server *postgres.Server, ttl time.Duration, log *slog.Logger) *State {
	db := server.DB(true)
	t := newTables(db, ttl)
	t.shared = db
	s := newState(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.unfollow = func() {
		cancel()
		<-done
	}
	// Ends with Close.
	go func() {
		defer close(done)
		s.follow(ctx, log)
	}()
	return s
}

// keepShared stores a decision in one round trip, and not after the deadline by the server's
// clock: after it the request is sent without a block, and a block that was stored later would
// change the beginning of the conversation. The answer may arrive after the deadline.
func (f *tables) keepShared(ctx context.Context, r *record) (kept []byte, err error) {
	if !f.shared.Settled() {
		return nil, errors.New("other replicas do not use Postgres again yet")
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(keepWithin)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(answerWithin))
	defer cancel()
	scopes := make([][]byte, len(r.scopes))
	for i, scope := range r.scopes {
		scopes[i] = []byte(scope)
	}
	const insert = `WITH r AS (SELECT EXISTS (SELECT 1 FROM floor WHERE list = '' AND key = ANY (?1) AND convert_from(value, 'UTF8')::bigint > ?2) AS refused)
		INSERT INTO %s (list, key, value, scopes, born) SELECT '', ?3, CASE WHEN refused THEN ?4::bytea ELSE ?5 END, CASE WHEN refused THEN '' ELSE ?6::text END, ?7
		FROM r WHERE clock_timestamp() < ?8 ON CONFLICT (list, key) DO NOTHING`
	found := false
	err = f.shared.Together(ctx, []postgres.Call{
		{Query: fmt.Sprintf(insert, r.kind.name), Args: []any{scopes, r.generation, r.key, r.refused, r.value, listed(r.scopes...), time.Now().UnixMicro(), f.shared.At(deadline)}},
		{Query: "SELECT value FROM " + r.kind.name + " WHERE list = '' AND key = ?", Args: []any{r.key}},
	}, func(scan func(...any) error) error {
		found = true
		return scan(&kept)
	})
	if err == nil && !found {
		err = context.DeadlineExceeded
	}
	return kept, err
}

// follow reads the new decisions and sessions of other replicas into RAM.
func (s *State) follow(ctx context.Context, log *slog.Logger) {
	since := make(map[*kind]int64)
	for _, k := range followed {
		since[k] = time.Now().Add(-followSince).UnixMicro()
	}
	t := time.NewTicker(followEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, k := range followed {
			newest, err := s.news(ctx, k, since[k])
			if err != nil && ctx.Err() == nil && s.Fault() == nil {
				log.Warn("read the blocks of other replicas failed", "error", err)
			}
			since[k] = newest
		}
	}
}

// news reads the records of a kind since a time, and returns the time of the newest one.
func (s *State) news(ctx context.Context, k *kind, since int64) (newest int64, err error) {
	newest = since
	forgets := s.Generations.Now() // before the read: a later forget makes its result outdated
	err = s.tables.db.Each(ctx, "SELECT key, value, born FROM "+k.name+" WHERE born > ? AND list = '' ORDER BY born", []any{since - followOverlap.Microseconds()}, func(scan func(...any) error) error {
		var key, value []byte
		var born int64
		if err := scan(&key, &value, &born); err != nil || len(key) != 16 {
			return err
		}
		newest = max(newest, born)
		if k == linkKind {
			s.Sessions.rememberNew([16]byte(key), string(value))
			return nil
		}
		d, err := parseDecision(value, false)
		if err == nil {
			e := recentDecision{d, forgets}
			s.Decisions.recent.AddOver([16]byte(key), e, e.bytes(), func(o recentDecision) bool { return o.forgets < forgets })
		}
		return err
	})
	return newest, err
}
