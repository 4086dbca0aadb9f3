package capture

import (
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
)

// overRedisName is the environment variable that makes the tests of this package share
// their spools over Redis.
const overRedisName = "CAPTURE_TEST_OVER_REDIS"

var servers sync.Map // *redistest.Redis by the path of the local spool

// overRedis returns the shared storage of a pipeline in the tests that TestAllOverRedis
// runs, and nil in others.
func overRedis(t testing.TB, path string) *Shared {
	t.Helper()
	if os.Getenv(overRedisName) == "" {
		return nil
	}
	s, ok := servers.Load(path)
	if !ok {
		s = redistest.Start(t)
		servers.Store(path, s)
	}
	return &Shared{DB: dial(t, s.(*redistest.Redis)), Name: "replica"}
}

func dial(t testing.TB, s *redistest.Redis) *redis.DB {
	t.Helper()
	db, err := redis.Open(s.URL(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestAllOverRedis runs the other tests again, with shared spools.
func TestAllOverRedis(t *testing.T) {
	if os.Getenv(overRedisName) != "" || os.Getenv("LONG_TESTS") == "" {
		t.Skip("these are the others, or it takes a minute")
	}
	ofTheFile := []string{
		"TestAllOverRedis", "TestSpoolCutOffInMidWrite", "TestInDoubtAfterACrash", "TestWhatCannotBeWrittenDownIsNotForgotten",
	}
	c := exec.Command(os.Args[0], "-test.run", "^Test", "-test.skip", "^("+strings.Join(ofTheFile, "|")+")$", "-test.parallel", "4", "-test.timeout", "9m") // #nosec G204 -- ourselves
	c.Env = append(os.Environ(), overRedisName+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("the tests over Redis: %v\n%s", err, out)
	}
}
