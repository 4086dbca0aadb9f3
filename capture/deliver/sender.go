package deliver

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// sender copies the turns of one worker of Graphiti, one after the other.
type sender struct {
	group  string        // the worker's only group, or "" if it serves all
	runs   bool          // serve runs
	wake   chan struct{} // capacity 1: testAll was called
	flight *flight       // the turn that was sent and is not listed yet, or nil
	askAt  time.Time     // of the next search that may show why the worker is quiet
	proven int64         // everything sent up to this position is processed

	pace   time.Duration // usual time of a turn, or 0 if unknown
	sign   time.Time     // last progress, or the first reason to expect some
	silent time.Time     // start of a silence, or zero
	warned bool          // the silence was logged
}

// flight is a turn that was sent.
type flight struct {
	ledger.Copy
	missing    []graphiti.Row // messages that are not listed yet
	seen       []graphiti.Row // listed ones
	first      time.Time      // earliest timestamp of the messages
	depth      int            // episodes to list
	unlisted   bool           // the last listing failed
	unreadable bool           // it failed in the server, which may be the fault of one group
	unproven   bool           // it may be older than the longest listing
	at         time.Time      // of the call
	since      time.Time      // start of the wait for its listing
	doubt      bool           // its call had no clear answer, or an earlier process made it
	lost       bool           // Graphiti has probably restarted, or works again: if it is missing, it is lost
}

// patience returns how long a turn may be missing. In a silence, it is a tenth of the silence: recovery
// takes little longer than the fault, and a long one gets few tests. Over REST a silent worker is
// dead, and a restart drops the tests. Over MCP a worker tries a message for up to 70 seconds while
// its model refuses, and stores each test after all.
func (s *sender) patience(t *Timing) time.Duration {
	first, again := t.Silence, t.Silence/3
	if s.group != "" {
		first = 5 * t.Silence / 2
		again = first
	}
	switch f := s.flight; {
	case f != nil && !s.silent.IsZero():
		return min(max(again, 4*s.pace, f.since.Sub(s.silent)/10), t.LastTest)
	case s.pace > 0:
		return max(first, 10*s.pace)
	case f != nil && f.doubt:
		return first
	}
	return t.StallAfter
}
