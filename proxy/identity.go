package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Identity says how callers are told apart.
type Identity struct {
	Multi   bool   // every credential is its own tenant
	Owner   string // the person in single mode, a canonical key
	Trusted Fingerprints
}

// Fingerprints is a set of credentials, of which only hashes are held.
type Fingerprints map[string]struct{}

// NewFingerprints reads credentials, or "sha256:" and the hex digits of one.
func NewFingerprints(keys []string) (Fingerprints, error) {
	f := make(Fingerprints)
	for i, k := range keys {
		digits, hashed := strings.CutPrefix(k, "sha256:")
		if !hashed {
			f[fingerprint([]byte(k))] = struct{}{}
			continue
		}
		if b, err := hex.DecodeString(digits); err != nil || len(b) != sha256.Size {
			return nil, fmt.Errorf("identity.trusted_keys: item %d begins with sha256: and does not go on with 64 hex digits", i+1)
		}
		f[strings.ToLower(digits)] = struct{}{}
	}
	return f, nil
}

// sources lists where a request says who it is from. The first value that can
// be one counts.
var sources = []struct {
	header string
	key    func(string) (string, bool)
	field  func(*graphiti.Who) *string
}{
	{"X-Graphiti-User", graphiti.UserKey, func(w *graphiti.Who) *string { return &w.User }},
	{"X-Graphiti-Session", graphiti.SessionKey, func(w *graphiti.Who) *string { return &w.Session }},
	{"X-Graphiti-Workspace", graphiti.WorkspaceKey, func(w *graphiti.Who) *string { return &w.Workspace }},
	{"X-Graphiti-Agent", graphiti.BareName, func(w *graphiti.Who) *string { return &w.Agent }},
	{"X-Graphiti-System-Actor", graphiti.BareName, func(w *graphiti.Who) *string { return &w.SystemActor }},
}

// who tells the caller of a request. known is false when there is neither a
// person nor an actor whose memory it could be.
//
// In multi mode whatever a header claims lies below the credential that was
// shown, unless the credential is a trusted gateway's: then its word counts,
// and without its word there is nobody.
func (id *Identity) who(h *fasthttp.RequestHeader) (w graphiti.Who, known bool) {
	for i := range sources {
		value := h.Peek(sources[i].header)
		if len(value) == 0 {
			continue
		}
		if f := sources[i].field(&w); *f == "" {
			if key, ok := sources[i].key(string(value)); ok {
				*f = key
			}
		}
	}
	if !id.Multi {
		if w.User == "" {
			w.User = id.Owner
		}
		return w, true
	}
	credential := credentialOf(h)
	if len(credential) == 0 {
		return w, false
	}
	w.Tenant = fingerprint(credential)
	if _, trusted := id.Trusted[w.Tenant]; trusted {
		w.Tenant = ""
		return w, w.User != "" || w.SystemActor != ""
	}
	if w.User == "" {
		w.User = "user:credential"
	}
	return w, true
}

// credentialOf is the secret that the caller shows to the upstream.
func credentialOf(h *fasthttp.RequestHeader) []byte {
	if a := h.Peek(fasthttp.HeaderAuthorization); len(a) > 0 {
		if len(a) > 7 && bytes.EqualFold(a[:7], []byte("bearer ")) {
			a = a[7:]
		}
		return bytes.TrimSpace(a)
	}
	if k := h.Peek("X-Api-Key"); len(k) > 0 {
		return k
	}
	return h.Peek("Api-Key")
}

func fingerprint(credential []byte) string {
	sum := sha256.Sum256(credential)
	return hex.EncodeToString(sum[:])
}
