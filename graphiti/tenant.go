package graphiti

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// identityDomain begins the input of every Digest. Its last part is the version of the
// derivation.
const identityDomain = "graphiti-proxy.identity.2"

// The kinds of identities that have a tenant.
const (
	tenantCredential  = "credential"
	tenantCredentials = "credentials"
	tenantPerson      = "person"
	tenantUpstream    = "upstream"
)

// Digest hashes a kind and its parts, each prefixed by its length, so that distinct inputs
// never collide by concatenation.
func Digest(kind string, parts ...string) (sum [sha256.Size]byte) {
	var b [512]byte // avoids most allocations
	text := appendPart(appendPart(b[:0], identityDomain), kind)
	for _, s := range parts {
		text = appendPart(text, s)
	}
	return sha256.Sum256(text)
}

// appendPart appends a part after its length.
func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

// HashedPerson begins a PersonHash.
const HashedPerson = "sha256:"

// PersonHash returns a hash that replaces a person's name in logs. Whoever knows the name can
// compute it.
func PersonHash(name string) string { return HashedPerson + tenant("log", name)[:16] }

func tenant(kind string, parts ...string) string {
	sum := Digest(kind, parts...)
	return hex.EncodeToString(sum[:])
}

// Fingerprint returns the hex SHA-256 of a credential, the form in the configuration.
func Fingerprint(credential []byte) string {
	sum := sha256.Sum256(credential)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

// SetPerson marks the caller as proven, in the person's own tenant.
func (w *Who) SetPerson() {
	w.Proven, w.Tenant = true, tenant(tenantPerson, w.User)
}

// SetCredentials sets the caller's tenant from the fingerprints of its credentials. Several
// credentials form one tenant. upstream names a configured upstream, or is "" for an API's
// own server.
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
