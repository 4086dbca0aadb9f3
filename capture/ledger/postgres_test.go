package ledger

import (
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
)

// onPostgres makes all tests of this package use Postgres instead of a file.
const onPostgres = "TEST_ON_POSTGRES"

func TestMain(m *testing.M) {
	code := m.Run()
	postgrestest.Stop()
	os.Exit(code)
}

// TestOnPostgres runs the tests of the ledger in another process, on Postgres.
func TestOnPostgres(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		t.Skip("this is the other process")
	}
	postgrestest.Database(t) // skips the test if there is none
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), onPostgres+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// openAny opens an empty ledger.
func openAny(t *testing.T) (*Ledger, error) {
	t.Helper()
	if os.Getenv(onPostgres) == "" {
		return Open(filepath.Join(t.TempDir(), "spool.db"))
	}
	s, err := postgres.Open(postgres.Options{URL: postgrestest.Database(t), Name: rand.Text(), Steps: []string{PostgresSchema}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &Ledger{db: s.DB(false), worth: func(*Turn) bool { return true }, memory: &shelf{db: s.DB(false)}, say: saying}, nil
}
