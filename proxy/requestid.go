package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"
)

// requestIDs numbers requests. The ids of two processes differ.
type requestIDs struct {
	prefix string
	last   atomic.Uint64
}

func newRequestIDs() *requestIDs {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &requestIDs{prefix: hex.EncodeToString(b[:]) + "-"}
}

func (r *requestIDs) next() uint64 { return r.last.Add(1) }

func (r *requestIDs) append(dst []byte, id uint64) []byte {
	return strconv.AppendUint(append(dst, r.prefix...), id, 36)
}

// logRequest writes one line about a request, for those who look for one:
// nothing of what was said, and of its address the path, without what looks
// like a key.
func (s *Server) logRequest(c *call, d *decision, status int, begun time.Time) {
	if !s.log.Enabled(s.base, slog.LevelDebug) {
		return
	}
	h := c.head
	attrs := []any{
		"id", string(s.ids.append(nil, c.id)), "method", string(h.Method()), "path", loggedPath(h.RequestURI()), "status", status,
		"ms", time.Since(begun).Milliseconds(),
	}
	if d.understood {
		attrs = append(attrs, "memory", string(appendOutcome(nil, &d.plan.Outcome)))
	}
	s.log.Debug("request", attrs...)
}
