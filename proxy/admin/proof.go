package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
)

// A command identifies the proxy before it sends a secret: it sends a challenge, and the
// proxy proves that it has the secret of the data directory.
const (
	ChallengeHeader = "X-Graphiti-Challenge"
	ProofHeader     = "X-Graphiti-Proof"

	// ChallengeSize is the length of a challenge, in hex digits.
	ChallengeSize = 64
)

// Proof returns the answer of the proxy with a secret to a challenge, on a connection
// between the proxy's address own and the command's address commands. A stranger that
// passes the challenge on has another connection to the proxy, though it may have had the
// same port before.
func Proof(secret []byte, challenge, own, commands string) string {
	m := hmac.New(sha256.New, secret)
	_, _ = m.Write([]byte("graphiti-proxy.admin.1\x00" + challenge + "\x00" + own + "\x00" + commands)) // never fails
	return hex.EncodeToString(m.Sum(nil))
}

// prove answers a challenge, if the proxy has a secret.
func (s *Server) prove(w http.ResponseWriter, r *http.Request) {
	challenge := r.Header.Get(ChallengeHeader)
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if _, err := hex.DecodeString(challenge); err != nil || len(challenge) != ChallengeSize || !ok || s.o.Secret == nil {
		return
	}
	w.Header().Set(ProofHeader, Proof(s.o.Secret, challenge, at.String(), r.RemoteAddr))
}
