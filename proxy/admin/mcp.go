package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/mcpserver"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	maxMCPSessions = 256
	mcpIdle        = time.Hour // after which a client has to begin a new session
)

// mcpRequestKey is the context key of the request that began a session. Tools run with its
// values.
type mcpRequestKey struct{}

// mcp returns the handler of /mcp. A session belongs to the caller who began it.
func (s *Server) mcp() http.HandlerFunc {
	tools := mcpserver.New(mcpserver.Options{Version: s.o.Version, Call: s.callTool, Project: s.o.Project, Log: slog.New(slog.DiscardHandler)})
	sessions := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{
		SessionTimeout: mcpIdle, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, // guard checks the host
	})
	// The handler compares the user of each call with that of the session's first call. It
	// gets a digest of the caller, and never a secret.
	owned := auth.RequireBearerToken(func(_ context.Context, digest string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: digest, Expiration: time.Now().Add(mcpIdle)}, nil
	}, nil)(sessions)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // a stream without a call would last forever
			w.Header().Set("Allow", "POST, DELETE")
			writeError(w, http.StatusMethodNotAllowed, "this server sends messages only in answers to calls")
			return
		}
		n := 0
		for range tools.Sessions() {
			n++
		}
		if n >= maxMCPSessions && r.Header.Get("Mcp-Session-Id") == "" {
			tooMany(w, writeError, "too many MCP sessions; end one of them")
			return
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%#v", keyOf(callerOf(r.Context()))))
		ctx := context.WithValue(r.Context(), mcpRequestKey{}, r.Clone(context.Background()))
		r = r.WithContext(ctx)
		r.Header = r.Header.Clone()
		r.Header.Set("Authorization", "Bearer "+hex.EncodeToString(sum[:]))
		owned.ServeHTTP(w, r)
	}
}

// callTool runs an operation for the caller of a session.
func (s *Server) callTool(ctx context.Context, op service.Mountable, in any) (any, error) {
	first, ok := ctx.Value(mcpRequestKey{}).(*http.Request)
	if !ok {
		return nil, errors.New("the session has no caller")
	}
	spec, _, _, _ := op.Describe()
	host := s.o.Host.Now()
	if host.Memory == nil && !spec.WithoutMemory {
		return nil, errors.New(host.Status(ctx, false).Memory.Off())
	}
	r := withCaller(first, callerOf(ctx))
	out, entry, err := service.Run(ctx, op, host, callerOf(ctx), in)
	if forbidden := (service.ForbiddenError{}); errors.As(err, &forbidden) {
		entry = service.Entry{What: spec.Name}
	}
	if entry.What != "" {
		s.audit(r, &entry, err)
	}
	return out, err
}
