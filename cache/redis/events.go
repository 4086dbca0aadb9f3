package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// MaxEvents is the approximate number of events in the stream, for replicas that start
	// or could not read for a while.
	MaxEvents = 10000

	eventField = "m"
	eventPage  = 500
	eventWait  = time.Second

	// listenerLife is the time that a replica counts as a listener after it last stored its
	// position.
	listenerLife = 30 * time.Second

	// announceTime is the timeout of Announce for the confirmations of all listeners.
	announceTime = 15 * time.Second
)

// EventStream returns the key of the stream of events between replicas.
func EventStream() string { return Key("news") }

// Listen calls apply for each event, starting with the oldest in the stream. If it may have
// missed events, it calls missed before the next event. It returns at once; one goroutine
// makes both calls until Close. Errors refer to this replica by name.
func (d *DB) Listen(name string, apply func(event string), missed func()) {
	token := rand.Text()
	// Ends when Close cancels base.
	d.wg.Go(func() {
		defer d.endListener(token)
		last, broken := "0-0", false
		for d.base.Err() == nil {
			list, gap, err := d.readEvents(last, broken)
			if broken = err != nil; broken {
				select {
				case <-d.base.Done():
				case <-time.After(pingEvery):
				}
				continue
			}
			if gap {
				missed()
			}
			for i := range list {
				last = list[i].ID
				if event, ok := list[i].Values[eventField].(string); ok {
					apply(event)
				}
			}
			d.storePosition(token, last+" "+name)
		}
	})
}

// storePosition stores the ID of the last event that this replica has applied. An error does
// not matter: the next call follows soon.
func (d *DB) storePosition(token, position string) {
	_ = d.Do(d.base, func(ctx context.Context, c Cmdable) error {
		p := c.Pipeline()
		p.Set(ctx, Key("listener", token), position, listenerLife)
		p.SAdd(ctx, Key("listeners"), token)
		_, err := p.Exec(ctx)
		return err
	})
}

func (d *DB) endListener(token string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_ = d.Do(ctx, func(ctx context.Context, c Cmdable) error { // on error, the key expires
		return c.Del(ctx, Key("listener", token)).Err()
	})
}

// Announce publishes an event and returns when every listener has applied it.
func (d *DB) Announce(ctx context.Context, event string) error {
	var id string
	err := d.Do(ctx, func(ctx context.Context, c Cmdable) (err error) {
		id, err = Publish(ctx, c, event).Result()
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, pingEvery) {
		name, err := d.listenerBehind(ctx, id)
		if err == nil && name == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return fmt.Errorf("%s has not confirmed it; if that replica has ended, run the command again in %s", name, listenerLife)
		case <-time.After(wait):
		}
	}
}

// listenerBehind returns the name of a listener that has not applied an event, or "" if
// every listener has.
func (d *DB) listenerBehind(ctx context.Context, id string) (name string, err error) {
	err = d.Do(ctx, func(ctx context.Context, c Cmdable) error {
		tokens, err := c.SMembers(ctx, Key("listeners")).Result()
		if err != nil {
			return err
		}
		for _, token := range tokens {
			position, err := c.Get(ctx, Key("listener", token)).Result()
			switch applied, of, _ := strings.Cut(position, " "); {
			case errors.Is(err, Nil):
				err = c.SRem(ctx, Key("listeners"), token).Err()
			case err == nil && before(applied, id):
				name = of
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return name, err
}

// before reports whether the entry with the ID a is older than the one with the ID b.
func before(a, b string) bool {
	am, an := idOf(a)
	bm, bn := idOf(b)
	return am < bm || am == bm && an < bn
}

func idOf(id string) (ms, n int64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseInt(first, 10, 64) // cannot fail: the server made it
	n, _ = strconv.ParseInt(second, 10, 64)
	return ms, n
}

// readEvents returns the events after the ID last. If there are none, it waits up to
// eventWait for one. After an error (broken), gap reports whether events may have been lost.
func (d *DB) readEvents(last string, broken bool) (list []goredis.XMessage, gap bool, err error) {
	err = d.wait(d.base, eventWait, func(ctx context.Context, c Cmdable) error {
		if broken {
			first, err := c.XRangeN(ctx, EventStream(), "-", "+", 1).Result()
			if err != nil {
				return err
			}
			known, err := c.XRangeN(ctx, EventStream(), last, last, 1).Result()
			if err != nil {
				return err
			}
			gap = len(first) > 0 && len(known) == 0
		}
		streams, err := c.XRead(ctx, &goredis.XReadArgs{Streams: []string{EventStream(), last}, Count: eventPage, Block: eventWait}).Result()
		if errors.Is(err, Nil) {
			return nil // no event within eventWait
		}
		for i := range streams {
			list = append(list, streams[i].Messages...)
		}
		return err
	})
	return list, gap, err
}

// Publish appends an event to the stream, for all replicas including this one. c may be a
// pipeline.
func Publish(ctx context.Context, c Cmdable, event string) *goredis.StringCmd {
	return c.XAdd(ctx, &goredis.XAddArgs{Stream: EventStream(), MaxLen: MaxEvents, Approx: true, Values: []string{eventField, event}})
}

// Retract deletes the events for which meant returns true.
func (d *DB) Retract(ctx context.Context, meant func(event string) bool) error {
	for from := "-"; from != ""; {
		err := d.Do(ctx, func(ctx context.Context, c Cmdable) error {
			list, err := c.XRangeN(ctx, EventStream(), from, "+", eventPage).Result()
			if err != nil {
				return err
			}
			var ids []string
			for i := range list {
				if event, ok := list[i].Values[eventField].(string); ok && meant(event) {
					ids = append(ids, list[i].ID)
				}
			}
			if len(ids) > 0 {
				err = c.XDel(ctx, EventStream(), ids...).Err()
			}
			if from = ""; len(list) == eventPage {
				from = "(" + list[eventPage-1].ID
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
