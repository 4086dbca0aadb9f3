package main

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
)

// passed returns the newest requests for operations.
func (a *app) passed(after, limit int, owner string) []service.LoggedRequest {
	all := a.proxy.Passed(after, limit, owner)
	list := make([]service.LoggedRequest, len(all))
	for i := range all {
		list[i] = requestOf(&all[i])
	}
	return list
}

func requestOf(p *observe.Passed) service.LoggedRequest {
	o := &p.Outcome
	r := service.LoggedRequest{
		Number: p.Number, ID: p.ID, Time: p.Began.UTC().Format(time.RFC3339Nano),
		Client: p.Client, Version: p.Version, Model: p.Model, API: p.API, Path: p.Path, Status: p.Status, Stream: p.Stream,
		Memory: string(o.Status), Reason: string(o.Reason), Source: string(o.Source), Fate: string(p.Fate.Name), Cause: p.Fate.Reason, Earlier: p.Fate.Earlier, Facts: o.Facts, Chars: o.Chars, Blocks: p.Blocks,
		MemoryMs: milliseconds(o.Took), UpstreamMs: milliseconds(p.Upstream), TotalMs: milliseconds(p.Total),
		InputTokens: p.Input, CachedTokens: p.Cached, Conversation: graphiti.SessionHash(p.Session), Turn: p.Turn, Person: p.Person,
	}
	for _, s := range p.Searches {
		r.Searches = append(r.Searches, service.Looking{Scope: string(s.Scope), Source: string(s.Source), Found: s.Found, Ms: milliseconds(s.Took), Failed: s.Failed})
	}
	return r
}

// milliseconds returns a time in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
