package cache

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Ended stores the names of messages that a person has ended, for example with "forget that
// …". They stay in the memory but are not recalled. It is safe for concurrent use.
type Ended struct{ store *tables }

// Add ends messages of a group, unless one of the scopes has a newer generation. Forgetting
// the group or a scope deletes the names.
func (e *Ended) Add(ctx context.Context, group string, names []string, at time.Time, generation int64, scopes ...string) error {
	var records []*record
	for _, name := range names {
		records = append(records, &record{
			kind: endedKind, list: group, key: []byte(name), value: []byte(at.UTC().Format(time.RFC3339)),
			generation: generation, scopes: append([]string{group}, scopes...),
		})
	}
	if err := e.store.write(ctx, records...); err != nil {
		return fmt.Errorf("end messages: %w", err)
	}
	return nil
}

// In returns the ended messages of groups with the time of their end.
func (e *Ended) In(ctx context.Context, groups ...string) (since map[string]string, err error) {
	err = e.store.list(ctx, endedKind, groups, func(_ string, name, at []byte) error {
		if since == nil {
			since = make(map[string]string)
		}
		since[string(name)] = string(at)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read ended messages: %w", err)
	}
	return since, nil
}

// Restore makes ended messages of a group valid again.
func (e *Ended) Restore(ctx context.Context, group string, names ...string) error {
	err := e.store.remove(ctx, endedKind, []string{group}, func(name, _ []byte) bool { return slices.Contains(names, string(name)) })
	if err != nil {
		return fmt.Errorf("restore messages: %w", err)
	}
	return nil
}

// Search returns a search without the messages that their person has ended.
func (e *Ended) Search(in graphiti.Searcher) graphiti.Searcher { return valid{in, e} }

// valid searches a memory without ended messages.
type valid struct {
	graphiti.Searcher
	ended *Ended
}

func (v valid) Search(ctx context.Context, groups []string, query string, most int) ([]graphiti.Fact, error) {
	found, err := v.Searcher.Search(ctx, groups, query, most)
	return v.ended.remove(ctx, found, err, groups...)
}

// remove removes ended messages, facts from ended messages only, and distilled facts with an
// ended message. If the state cannot be read, it returns no facts: one of them may have been
// ended.
func (e *Ended) remove(ctx context.Context, found []graphiti.Fact, err error, groups ...string) ([]graphiti.Fact, error) {
	if err != nil || len(found) == 0 {
		return found, err
	}
	since, err := e.In(ctx, groups...)
	switch {
	case err != nil:
		return nil, err
	case len(since) == 0:
		return found, nil
	}
	return slices.DeleteFunc(slices.Clone(found), func(f graphiti.Fact) bool {
		_, message := since[f.Episode]
		_, fact := since[f.UUID]
		return message || fact || slices.ContainsFunc(f.Messages, func(m string) bool { _, distilled := since[m]; return distilled })
	}), nil
}
