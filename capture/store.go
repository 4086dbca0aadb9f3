package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// store is where turns wait until the memory is known to hold them: the file of
// one process, or what replicas share. Its methods may be called from several
// goroutines; what they leave behind is committed.
type store interface {
	// add stores turns for each of their groups that has not had them. Where a
	// group has the beginning of a turn whose end came late, it gets the end.
	add(ctx context.Context, turns []Turn, now time.Time) ([]added, error)

	// whole says of each turn whether all of its groups have all of it.
	whole(ctx context.Context, turns []Turn) ([]bool, error)

	// cutOff notes that a turn's answer came to no clean end: the turn is not
	// added any more where it comes from a history.
	cutOff(ctx context.Context, t *Turn, now time.Time) error

	// What is read when delivery begins: the groups for which turns wait, and
	// the entries that an earlier process handed over.
	groups(found func(group string, fresh bool)) error
	inDoubt(found func(group string, e entry)) error
	instance() (string, error) // a name among other stores

	// What delivery goes by, and writes down.
	head(ctx context.Context, group string, n int) ([]entry, error)
	handOver(group string, entries []entry) error
	takeBack(group string, entries []entry, reason string) error
	done(group string, entries []entry, verified bool, now time.Time) (size, error)
	bury(group string, e *entry, reason string) (size, error)

	// Bounds and counts.
	sizes(ctx context.Context) (sizes, error)
	totals() (totals, error)
	oldest() (time.Time, error)
	cut(over size) (dropped, error)
	dropBefore(t time.Time) (dropped, error)
	forgetSeen(now time.Time, most int) error

	// What people ask for.
	letters(ctx context.Context, o ListOptions) ([]Letter, int, error)
	retry(numbers []int64) (groups []string, back size, err error)
	dropDead(numbers []int64) (dropped, error)
	promoted(ctx context.Context) (map[string]bool, error)
	owned(ctx context.Context, owner string) ([]Owned, error)
	talks(ctx context.Context, session string) ([]Owned, error)
	waiting(ctx context.Context, part Part, f func(graphiti.Message) error, maxChars int) error

	// forget takes the turns of a part out, and has none kept from now on that
	// was heard of until now. The last time it also forgets that there was
	// something.
	forget(part Part, last bool) (dropped, error)

	// gone says that a group has forgotten turns that were delivered to it.
	gone(group string, turns []string) error

	close() error
}
