package redis

import (
	"context"
	"errors"
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
)

// Listen calls heard for what replicas tell each other, also for what they
// told lately. Where something may be gone that was not heard, missed is called
// before what came after it. It returns at once; both are called in one
// goroutine, until Close.
func (d *DB) Listen(news string, heard func(string), missed func()) {
	// Ends when Close cancels base.
	d.wg.Go(func() {
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
		}
	})
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
	return c.XAdd(ctx, &goredis.XAddArgs{Stream: Key(news), MaxLen: NewsKept, Approx: true, Values: []string{newsField, what}}).Err()
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
