package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	random "math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	turns "github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// models is the number of people whose turns are stored one by one. The other people have copies of
// these.
const models = 10

// crowd is a memory of many people on Postgres.
type crowd struct {
	people, messages int
	store            *embedded.Store
	db               database.DB
}

// people measures one replica with the memories of many people in an empty Postgres.
func people(args []string) error {
	var c crowd
	f := flag.NewFlagSet("people", flag.ContinueOnError)
	url := f.String("postgres", "", "address of an empty database")
	f.IntVar(&c.people, "people", 1000, "number of people")
	f.IntVar(&c.messages, "messages", 1000, "messages of each")
	active := f.Int("active", 500, "people who search")
	bytes := f.Int("index-bytes", 64<<20, "memory.index_bytes")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *url == "" {
		return errors.New("-postgres is missing")
	}
	shared, err := postgres.Open(postgres.Options{URL: *url, Name: rand.Text(), Steps: []string{embedded.PostgresSchema + turns.PostgresSchema}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { _ = shared.Close() }()
	c.db = shared.DB(false)
	c.store = embedded.OpenShared(c.db)
	defer func() { _ = c.store.Close() }()
	c.store.Limit(*bytes)
	ctx := context.Background()
	began := time.Now()
	if err := c.fill(ctx); err != nil {
		return err
	}
	filled := time.Since(began)
	var disk int64
	if err := c.db.QueryRow(ctx, "SELECT pg_database_size(current_database())", nil, &disk); err != nil {
		return err
	}
	all := c.people * c.messages
	fmt.Printf("%d people, %d messages, filled in %s\n| figure | |\n| --- | --- |\n| disk | %.2f GB, %d bytes a message |\n", c.people, all, filled.Round(time.Second), float64(disk)/1e9, int(disk)/all)
	before := heap()
	first, later, err := c.search(ctx, min(*active, c.people))
	if err != nil {
		return err
	}
	for name, took := range map[string][]float64{"first search": first, "later search": later} {
		slices.Sort(took)
		fmt.Printf("| %s, p50, p95, slowest | %.1f, %.1f, %.1f ms |\n", name, took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
	}
	fmt.Printf("| RAM of the indexes | %.1f MB for %d active people, memory.index_bytes %d MiB |\n", float64(heap()-before)/1e6, *active, *bytes>>20)
	return nil
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far smaller
}

// fill stores the messages: those of the models by the ledger, the others by copies in the database.
func (c *crowd) fill(ctx context.Context) error {
	l := c.store.Ledger(func(t *turns.Turn, _ graphiti.Scope) []graphiti.Row {
		row := func(role graphiti.RoleType, text string) graphiti.Row {
			return graphiti.Row{Name: graphiti.EpisodeName(t.ID, role), Role: role, Text: text, Said: t.Said, Source: `{"session":"` + t.Session + `"}`}
		}
		return []graphiti.Row{row(graphiti.RoleUser, t.User), row(graphiti.RoleAssistant, t.Assistant)}
	})
	const atOnce = 200
	for p := range min(models, c.people) {
		r := random.New(random.NewPCG(uint64(p), 1)) // #nosec G404 -- the same texts in each run
		var batch []turns.Turn
		for i := range c.messages / 2 {
			batch = append(batch, turns.Turn{ID: fmt.Sprintf("%08x%024x", p, i), User: madeUp(r, 12), Assistant: madeUp(r, 40), Session: fmt.Sprint("s", i/10), Owner: personNamed(p),
				Said: time.Now().Add(-time.Duration(c.messages-i) * time.Minute), Targets: []graphiti.Target{{Group: personNamed(p), Scope: graphiti.ScopeUser}}})
			if len(batch) == atOnce || i == c.messages/2-1 {
				if _, err := l.Add(ctx, batch, time.Now()); err != nil {
					return err
				}
				batch = nil
			}
		}
	}
	var there int // of an earlier run
	if err := c.db.QueryRow(ctx, "SELECT count(*) FROM groups", nil, &there); err != nil {
		return err
	}
	for p := max(models, there); p < c.people; p++ {
		from, to := personNamed(p%models), personNamed(p)
		err := c.db.Write(ctx, func(tx *database.Tx) error {
			for _, s := range []string{
				"INSERT INTO groups (name) SELECT ?2::text WHERE ?1::text <> ''",
				"INSERT INTO messages (id, grp, rev, name, role, speaker, content, source, said, kept) SELECT (b.id << 32) | (m.id & 4294967295), b.id, 1, m.name, m.role, m.speaker, m.content, m.source, m.said, m.kept FROM messages m JOIN groups a ON a.id = m.grp AND a.name = ?1::text JOIN groups b ON b.name = ?2::text",
				"INSERT INTO turns (turn, grp, state, digest, at) SELECT turn, ?2::text, state, digest, at FROM turns WHERE grp = ?1::text",
			} {
				if _, err := tx.Exec(s, from, to); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func personNamed(p int) string { return fmt.Sprint("user_", p) }

// search asks twice for one text of each active person, and returns the times of the first and of the
// later searches in milliseconds.
func (c *crowd) search(ctx context.Context, active int) (first, later []float64, err error) {
	for p := range active {
		r := random.New(random.NewPCG(uint64(p%models), 1)) // #nosec G404 -- the texts of fill
		question := "Where is the " + strings.TrimSuffix(madeUp(r, 12), ".") + "?"
		for _, took := range []*[]float64{&first, &later} {
			began := time.Now()
			facts, err := c.store.Search(ctx, []string{personNamed(p)}, question, 12)
			if err != nil {
				return nil, nil, err
			}
			if len(facts) == 0 {
				fmt.Fprintln(os.Stderr, "no fact of", personNamed(p))
			}
			*took = append(*took, float64(time.Since(began).Microseconds())/1000)
		}
	}
	return first, later, nil
}

// madeUp returns a text of n words from a vocabulary of 30,000, in which common words are frequent.
func madeUp(r *random.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = word(int(30_000 * r.Float64() * r.Float64() * r.Float64()))
	}
	return strings.Join(words, " ") + "."
}

// word returns the word with a number.
func word(n int) string {
	const first, second = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for range 4 {
		b.WriteByte(first[n%len(first)])
		n /= len(first)
		b.WriteByte(second[n%len(second)])
		n /= len(second)
	}
	return b.String()
}
