package identity

import (
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
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
	if secret == "" || len(token) > maxToken {
		return claims, false
	}
	p := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer("open-webui"), jwt.WithExpirationRequired(), jwt.WithLeeway(clockLeeway),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return now }))
	t, err := p.Parse(token, func(*jwt.Token) (any, error) { return []byte(secret), nil })
	if err != nil {
		return claims, false
	}
	if _, ok := t.Header["crit"]; ok { // an extension that we do not implement
		return claims, false
	}
	payload, err := p.DecodeSegment(strings.Split(token, ".")[1])
	return gjson.ParseBytes(payload), err == nil
}
