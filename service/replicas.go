package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Listen takes over what other replicas keep, learn and forget.
func (sv *Service) Listen() {
	if sv.o.Shared == nil {
		return
	}
	forget := func() {
		sv.o.Planner.Forgot()
		sv.o.State.Blocks.Forgotten()
		sv.o.Pipeline.Doubt()
	}
	withhold := func() {
		if err := sv.withhold(context.Background()); err != nil {
			sv.o.Log.Warn("which groups are to be forgotten is not known; nothing is recalled until it is", "error", err)
		}
	}
	sv.o.Shared.Listen(sv.o.Name, cache.News, func(news string) {
		if news == cache.NewsOfTombstones {
			withhold()
		}
		sv.o.State.Heard(news)
		sv.o.Facts.Heard(news)
		if what, ok := strings.CutPrefix(news, cache.NewsOfForget); ok {
			forget()
			if err := sv.dropUnderWay(partIn(what)); err != nil {
				sv.o.Log.Warn("what is under way here cannot be forgotten", "error", err)
			}
		}
	}, func() { // what was said meanwhile is not known
		withhold()
		forget()
		sv.o.Facts.DropAll()
	})
}

// tellForgotten returns when other replicas have dropped what they have in
// memory of a part.
func (sv *Service) tellForgotten(ctx context.Context, part ledger.Part) error {
	if sv.o.Shared == nil {
		return nil
	}
	if err := sv.o.Shared.Announce(ctx, cache.News, cache.NewsOfForget+partNews(part)); err != nil {
		return fmt.Errorf("tell the other replicas: %w", err)
	}
	return nil
}

// partNews is how replicas speak of a part: no name has line breaks in it.
func partNews(part ledger.Part) string {
	if part.Session == "" {
		return part.Group
	}
	return part.Group + "\n" + part.Session + "\n" + part.Owner
}

func partIn(news string) (part ledger.Part) {
	part.Group, news, _ = strings.Cut(news, "\n")
	part.Session, part.Owner, _ = strings.Cut(news, "\n")
	return part
}
