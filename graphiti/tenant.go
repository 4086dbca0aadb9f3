package graphiti

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// identityDomain begins whatever an identity is derived from. Its last part is
// the version: another derivation gets another one.
const identityDomain = "graphiti-proxy.identity.2"

// The kinds of identities that have a tenant.
const (
	tenantCredential  = "credential"
	tenantCredentials = "credentials"
	tenantPerson      = "person"
	tenantUpstream    = "upstream"
)

// Digest derives an identity from its kind and its parts. Everything is hashed
// behind its length: no part can be spelt so that it reads as two parts, as
// another kind, or as an identity of another version.
func Digest(kind string, parts ...string) (sum [sha256.Size]byte) {
	var b [512]byte // so that usual ones need no memory
	text := appendPart(appendPart(b[:0], identityDomain), kind)
	for _, s := range parts {
		text = appendPart(text, s)
	}
	return sha256.Sum256(text)
}

// appendPart appends a part behind its length.
func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

func tenant(kind string, parts ...string) string {
	sum := Digest(kind, parts...)
	return hex.EncodeToString(sum[:])
}

// Fingerprint is the SHA-256 of a credential, as operators write it down.
func Fingerprint(credential []byte) string {
	sum := sha256.Sum256(credential)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

// SetPerson puts the caller below the tenant of their own person, who is
// proven.
func (w *Who) SetPerson() {
	w.Proven, w.Tenant = true, tenant(tenantPerson, w.User)
}

// SetCredentials puts the caller below the tenant of what they show: one
// credential, or several together, by their fingerprints. upstream is the name
// of the server that they are shown to, where it is not an API's own.
func (w *Who) SetCredentials(upstream string, fingerprints ...string) {
	all := slices.Compact(slices.Sorted(slices.Values(fingerprints)))
	switch {
	case upstream != "":
		w.Tenant = tenant(tenantUpstream, append([]string{upstream}, all...)...)
	case len(all) == 1:
		w.Tenant = tenant(tenantCredential, all[0])
	default:
		w.Tenant = tenant(tenantCredentials, all...)
	}
}
