package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const (
	maxToken = 8 << 10 // bytes of a signed token

	// clockLeeway is the tolerated difference between our clock and the signer's.
	clockLeeway = 30 * time.Second
)

// openWebUIToken reads the JSON Web Token in which Open WebUI names a person. ok requires
// a valid HMAC-SHA-256 signature, Open WebUI as the issuer, and an expiry in the future.
func openWebUIToken(token, secret string, now time.Time) (claims gjson.Result, ok bool) {
	signed, signature, _ := cutLast(token, '.')
	head, payload, found := strings.Cut(signed, ".")
	if secret == "" || len(token) > maxToken || !found {
		return claims, false
	}
	want := hmac.New(sha256.New, []byte(secret))
	_, _ = want.Write([]byte(signed)) // never fails
	got, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !hmac.Equal(got, want.Sum(nil)) {
		return claims, false
	}
	header, ok := tokenPart(head)
	// A critical header is an extension that we do not implement.
	if !ok || header.Get("alg").String() != "HS256" || header.Get("crit").Exists() {
		return claims, false
	}
	claims, ok = tokenPart(payload)
	if !ok || claims.Get("iss").String() != "open-webui" {
		return claims, false
	}
	at := func(name string) (t time.Time, isTime bool) {
		v := claims.Get(name)
		return time.Unix(v.Int(), 0), v.Type == gjson.Number
	}
	expires, expiring := at("exp")
	begins, beginning := at("nbf")
	return claims, expiring && now.Before(expires.Add(clockLeeway)) && (!beginning || begins.Before(now.Add(clockLeeway)))
}

// tokenPart decodes one part of a token, a JSON object.
func tokenPart(encoded string) (gjson.Result, bool) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || !gjson.ValidBytes(text) {
		return gjson.Result{}, false
	}
	r := gjson.ParseBytes(text)
	return r, r.IsObject()
}

// cutLast slices s around the last separator.
func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
