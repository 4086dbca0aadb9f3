package cache

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
)

// RatesSchema creates the table of ShareRates in Postgres.
const RatesSchema = "CREATE TABLE rates (key bytea PRIMARY KEY, full_at timestamptz NOT NULL);"

const (
	// shareWithin bounds an exchange of rates, and maxRates its rows.
	shareWithin = 2 * time.Second
	maxRates    = 20_000
)

// ShareRates adds the times spent from token buckets to those of all replicas of a shared state, in
// one round trip. It returns the time until each bucket is full again, without the full ones. All times are
// differences, so the clocks of replicas may differ.
func (s *State) ShareRates(ctx context.Context, spent map[[32]byte]time.Duration) (until map[[32]byte]time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, shareWithin)
	defer cancel()
	keys, times := make([][]byte, 0, len(spent)), make([]int64, 0, len(spent))
	for key, d := range spent {
		keys, times = append(keys, key[:]), append(times, d.Microseconds())
	}
	until = make(map[[32]byte]time.Duration)
	// The order prevents deadlocks between replicas.
	err = s.tables.shared.Together(ctx, []postgres.Call{
		{Query: `INSERT INTO rates AS r (key, full_at) SELECT k, now() + spent * interval '1 microsecond' FROM unnest(?::bytea[], ?::bigint[]) AS t(k, spent) ORDER BY k
			ON CONFLICT (key) DO UPDATE SET full_at = greatest(r.full_at, now()) + (excluded.full_at - now())`, Args: []any{keys, times}},
		{Query: "DELETE FROM rates WHERE key IN (SELECT key FROM rates WHERE full_at < now() - interval '1 minute' ORDER BY key FOR UPDATE SKIP LOCKED)"},
		{Query: "SELECT key, (extract(epoch FROM full_at - now()) * 1000000)::bigint FROM rates WHERE full_at > now() ORDER BY full_at DESC LIMIT ?", Args: []any{maxRates}},
	}, func(scan func(...any) error) error {
		var key []byte
		var us int64
		err := scan(&key, &us)
		if err == nil && len(key) == 32 {
			until[[32]byte(key)] = time.Duration(us) * time.Microsecond
		}
		return err
	})
	return until, err
}
