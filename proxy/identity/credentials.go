package identity

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// Fingerprints is a set of hashed credentials. A nil set contains all of them.
type Fingerprints map[string]struct{}

// NewFingerprints returns the set of the items of a checked setting, each a credential or its
// SHA-256 as "sha256:" and hex digits. It returns nil for an empty list.
func NewFingerprints(keys []string) Fingerprints {
	if len(keys) == 0 {
		return nil
	}
	f := make(Fingerprints)
	for _, k := range keys {
		digits, hashed := strings.CutPrefix(k, "sha256:")
		if !hashed {
			digits = graphiti.Fingerprint([]byte(k))
		}
		f[strings.ToLower(digits)] = struct{}{}
	}
	return f
}

// Admit reports whether a request carries a credential of the set, or the set is nil.
func (f Fingerprints) Admit(h *fasthttp.RequestHeader) bool {
	return f == nil || slices.ContainsFunc(credentialsOf(h, nil), func(one string) bool { _, known := f[one]; return known })
}

// credentials are the distinct fingerprints of a request's secrets.
type credentials []string

// single returns the only fingerprint, or "" unless there is exactly one.
func (s credentials) single() string {
	if len(s) != 1 {
		return ""
	}
	return s[0]
}

// ShowsCredential reports whether a request has a credential.
func ShowsCredential(h *fasthttp.RequestHeader) bool {
	for range secretsIn(h) {
		return true
	}
	return false
}

// credentialsOf appends the fingerprints of a request's credentials to buf. We cannot tell
// which of several the upstream checks, so all of them together identify the caller.
func credentialsOf(h *fasthttp.RequestHeader, buf []string) credentials {
	all := credentials(buf)
	for v := range secretsIn(h) {
		if f := graphiti.Fingerprint(v); !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// Payers returns the names that count a request for limits: the proven person, or else each
// credential. A further credential, which the upstream may ignore, lifts no limit.
func (id *Settings) Payers(h *fasthttp.RequestHeader) []string {
	if w := id.Identify(new(Claims).ReadHead(h), "").Who; id.Multi && w.Proven {
		return []string{"person " + w.User}
	}
	if all := credentialsOf(h, nil); len(all) > 0 {
		return all
	}
	return []string{""}
}

// Secret returns the only credential of a request. ok is false unless there is exactly one.
func Secret(h *fasthttp.RequestHeader) (secret string, ok bool) {
	for v := range secretsIn(h) {
		if secret != "" && secret != string(v) {
			return "", false
		}
		secret = string(v)
	}
	return secret, secret != ""
}

// secretsIn yields the secrets of a request, without "Bearer" and spaces.
func secretsIn(h *fasthttp.RequestHeader) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i, v := range credentialsIn(h) {
			if registry.Credentials[i].Header == fasthttp.HeaderAuthorization && len(v) >= 6 && bytes.EqualFold(v[:6], []byte("bearer")) && (len(v) == 6 || v[6] == ' ') {
				v = v[6:]
			}
			if v = bytes.TrimSpace(v); len(v) > 0 && !yield(v) {
				return
			}
		}
	}
}

// AppendCredentials appends the raw credentials of the request. Requests with the same
// result have the same caller.
func (cl *Claims) AppendCredentials(dst []byte) []byte {
	for i, v := range credentialsIn(cl.h) {
		dst = append(dst, byte(i))
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v))) // #nosec G115 -- bounded by the size of the head
		dst = append(dst, v...)
	}
	return dst
}

// credentialsIn yields the values of a request's headers and query parameters for
// credentials, with their index in registry.Credentials. It reads the headers once.
func credentialsIn(h *fasthttp.RequestHeader) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for name, value := range h.All() {
			for i := range registry.Credentials {
				if string(name) == registry.Credentials[i].Header && !yield(i, value) {
					return
				}
			}
		}
		_, query, ok := bytes.Cut(h.RequestURI(), []byte{'?'})
		if !ok {
			return
		}
		var args fasthttp.Args
		args.ParseBytes(query)
		for name, value := range args.All() {
			for i := range registry.Credentials {
				if len(name) > 0 && string(name) == registry.Credentials[i].Query && !yield(i, value) {
					return
				}
			}
		}
	}
}
