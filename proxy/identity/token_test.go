package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// token returns a JWT with the given header and claims, signed with secret.
func token(h func() hash.Hash, secret, head, claims string) string {
	signed := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// TestOpenWebUISigns checks that the token of Open WebUI names the person. An invalid token
// names no person, and turns memory off for its request.
func TestOpenWebUISigns(t *testing.T) {
	const secret, head = "a secret of both", `{"alg":"HS256","typ":"JWT"}`
	now := time.Now().Unix()
	claims := func(more string, expires int64) string {
		return fmt.Sprintf(`{"sub":"5f2c","email":"Ann@example.com","name":"Ann","role":"user","iss":"open-webui","iat":%d,"exp":%d%s}`, now, expires, more)
	}
	good := token(sha256.New, secret, head, claims("", now+300))
	last := good[len(good)-2:]
	for _, tc := range []struct {
		name, token string
		believed    bool
	}{
		{"as it is sent", good, true},
		{"a clock that is a little behind", token(sha256.New, secret, head, claims("", now-10)), true},
		{"expired", token(sha256.New, secret, head, claims("", now-60)), false},
		{"valid for ever", token(sha256.New, secret, head, `{"sub":"5f2c","iss":"open-webui"}`), false},
		{"an expiry that is no number", token(sha256.New, secret, head, `{"sub":"5f2c","iss":"open-webui","exp":"9999999999"}`), false},
		{"not valid yet", token(sha256.New, secret, head, claims(fmt.Sprintf(`,"nbf":%d`, now+90), now+300)), false},
		{"another secret", token(sha256.New, "another", head, claims("", now+300)), false},
		{"no signature", good[:strings.LastIndexByte(good, '.')+1], false},
		{"no algorithm", token(sha256.New, secret, `{"alg":"none"}`, claims("", now+300)), false},
		{"another algorithm", token(sha512.New, secret, `{"alg":"HS512"}`, claims("", now+300)), false},
		{"another algorithm by name alone", token(sha256.New, secret, `{"alg":"RS256"}`, claims("", now+300)), false},
		{"a demand that is not understood", token(sha256.New, secret, `{"alg":"HS256","crit":["b64"],"b64":false}`, claims("", now+300)), false},
		{"another issuer", token(sha256.New, secret, head, strings.Replace(claims("", now+300), "open-webui", "else", 1)), false},
		{"another payload", strings.Replace(good, ".", ".e30", 1), false},
		{"another end", strings.TrimSuffix(good, last) + "AA", false},
		{"no token", "x", false},
		{"two parts", "a.b", false},
		{"too long", token(sha256.New, secret, head, claims(`,"more":"`+strings.Repeat("x", maxToken)+`"`, now+300)), false},
	} {
		for _, id := range []Settings{
			{Owner: "user:o", OpenWebUI: secret},
			{Multi: true, OpenWebUI: secret, Trusted: NewFingerprints([]string{"sk-gateway"})},
		} {
			var h fasthttp.RequestHeader
			h.Set("Authorization", "Bearer sk-gateway")
			h.Set("X-OpenWebUI-User-Jwt", tc.token)
			c := id.Identify(claimsIn(&h, &dialect.Conversation{Last: -1}), "")
			if c.Known != tc.believed || c.Contradicts == tc.believed || tc.believed && (c.Who.User != "user:openwebui:5f2c" || c.Who.Proven != id.Multi) {
				t.Errorf("%s, multi %v: %+v, want believed %v", tc.name, id.Multi, c, tc.believed)
			}
		}
	}
	var h fasthttp.RequestHeader
	h.Set("Authorization", "Bearer sk-gateway")
	h.Set("X-OpenWebUI-User-Jwt", good)
	if c := (&Settings{Owner: "user:o"}).Identify(claimsIn(&h, &dialect.Conversation{Last: -1}), ""); c.Known {
		t.Errorf("a token without a secret to check it: %+v, want not known", c)
	}
	var people Registry
	people.Set([]Person{{ID: "ann", Identities: map[string]string{"openwebui": "ann@example.com"}}})
	id := Settings{Multi: true, OpenWebUI: secret, Trusted: NewFingerprints([]string{"sk-gateway"}), People: &people}
	if c := id.Identify(claimsIn(&h, &dialect.Conversation{Last: -1}), ""); c.Who.User != "user:ann" || !c.Known {
		t.Errorf("a token with ann's address: %+v, want user:ann, known", c)
	}
	h.Set("Authorization", "Bearer sk-other")
	if c := id.Identify(claimsIn(&h, &dialect.Conversation{Last: -1}), ""); c.Who.Proven {
		t.Errorf("a token behind a key that is not trusted: %+v, want not proven", c)
	}
}
