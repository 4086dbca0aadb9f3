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
	// NewsKept is about how many pieces of news are kept: a replica that
	// starts, or that did not hear the server for a while, takes them in.
	NewsKept = 10000

	newsField = "m"
	newsPage  = 500
	newsWait  = time.Second

	// listening is how long a replica counts as one that listens after it has
	// last said so.
	listening = 30 * time.Second

	// hearing is how long it may take all of them to hear.
	hearing = 15 * time.Second
)

// Listen calls heard for what replicas tell each other, also for what they
// told lately. Where something may be gone that was not heard, missed is called
// before what came after it. It returns at once; both are called in one
// goroutine, until Close. The name is this replica's, for people.
func (d *DB) Listen(name, news string, heard func(string), missed func()) {
	token := rand.Text()
	// Ends when Close cancels base.
	d.wg.Go(func() {
		defer d.signOff(token)
		last, broken := "0-0", false
		for d.base.Err() == nil {
			list, gap, err := d.readNews(Key(news), last, broken)
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
				if text, ok := list[i].Values[newsField].(string); ok {
					heard(text)
				}
			}
			d.sign(token, last+" "+name)
		}
	})
}

// sign says what this replica has heard. Should it fail, it is said again
// before long.
func (d *DB) sign(token, heard string) {
	_ = d.Do(d.base, func(ctx context.Context, c Cmdable) error {
		p := c.Pipeline()
		p.Set(ctx, Key("listener", token), heard, listening)
		p.SAdd(ctx, Key("listeners"), token)
		_, err := p.Exec(ctx)
		return err
	})
}

func (d *DB) signOff(token string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_ = d.Do(ctx, func(ctx context.Context, c Cmdable) error { // it ends by itself
		return c.Del(ctx, Key("listener", token)).Err()
	})
}

// Announce tells all replicas something, and returns when those that listen
// have heard it.
func (d *DB) Announce(ctx context.Context, news, what string) error {
	var id string
	err := d.Do(ctx, func(ctx context.Context, c Cmdable) (err error) {
		id, err = tell(ctx, c, news, what).Result()
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, pingEvery) {
		deaf, err := d.deaf(ctx, id)
		if err == nil && deaf == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return fmt.Errorf("%s has not heard of it; if it has ended, run it again in %s", deaf, listening)
		case <-time.After(wait):
		}
	}
}

// deaf is the name of a replica that listens and has not heard what has that
// id; empty: there is none.
func (d *DB) deaf(ctx context.Context, id string) (name string, err error) {
	err = d.Do(ctx, func(ctx context.Context, c Cmdable) error {
		tokens, err := c.SMembers(ctx, Key("listeners")).Result()
		if err != nil {
			return err
		}
		for _, token := range tokens {
			signed, err := c.Get(ctx, Key("listener", token)).Result()
			switch heard, of, _ := strings.Cut(signed, " "); {
			case errors.Is(err, Nil):
				err = c.SRem(ctx, Key("listeners"), token).Err()
			case err == nil && before(heard, id):
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

// before compares ids in a stream.
func before(a, b string) bool {
	am, an := idOf(a)
	bm, bn := idOf(b)
	return am < bm || am == bm && an < bn
}

func idOf(id string) (ms, n int64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseInt(first, 10, 64) // the server's
	n, _ = strconv.ParseInt(second, 10, 64)
	return ms, n
}

// readNews waits a while for news after the last. When it could not be read
// before, it also looks whether there is a gap.
func (d *DB) readNews(stream, last string, broken bool) (list []goredis.XMessage, gap bool, err error) {
	err = d.Wait(d.base, newsWait, func(ctx context.Context, c Cmdable) error {
		if broken {
			first, err := c.XRangeN(ctx, stream, "-", "+", 1).Result()
			if err != nil {
				return err
			}
			known, err := c.XRangeN(ctx, stream, last, last, 1).Result()
			if err != nil {
				return err
			}
			gap = len(first) > 0 && len(known) == 0
		}
		streams, err := c.XRead(ctx, &goredis.XReadArgs{Streams: []string{stream, last}, Count: newsPage, Block: newsWait}).Result()
		if errors.Is(err, Nil) {
			return nil // nothing came
		}
		for i := range streams {
			list = append(list, streams[i].Messages...)
		}
		return err
	})
	return list, gap, err
}

// Tell says something to all replicas, this one included.
func Tell(ctx context.Context, c Cmdable, news, what string) error {
	return tell(ctx, c, news, what).Err()
}

func tell(ctx context.Context, c Cmdable, news, what string) *goredis.StringCmd {
	return c.XAdd(ctx, &goredis.XAddArgs{Stream: Key(news), MaxLen: NewsKept, Approx: true, Values: []string{newsField, what}})
}

// Unsay removes what was told and is meant.
func (d *DB) Unsay(ctx context.Context, news string, meant func(string) bool) error {
	stream := Key(news)
	for from := "-"; from != ""; {
		err := d.Do(ctx, func(ctx context.Context, c Cmdable) error {
			list, err := c.XRangeN(ctx, stream, from, "+", newsPage).Result()
			if err != nil {
				return err
			}
			var ids []string
			for i := range list {
				if text, ok := list[i].Values[newsField].(string); ok && meant(text) {
					ids = append(ids, list[i].ID)
				}
			}
			if len(ids) > 0 {
				err = c.XDel(ctx, stream, ids...).Err()
			}
			if from = ""; len(list) == newsPage {
				from = "(" + list[newsPage-1].ID
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
