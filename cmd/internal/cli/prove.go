package cli

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// proofTimeout bounds the wait for a proof.
const proofTimeout = 5 * time.Second

// connect opens a connection to the intended proxy, which has proven itself by the secret
// of the data directory or by its certificate. It requires no proof if there is no token
// and only the address names the proxy.
func (c *AdminClient) connect(ctx context.Context, network, address string, trust *tls.Config) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the admin side: %w", err)
	}
	if err = c.check(ctx, &conn, address, trust); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// check verifies a connection, over TLS if there is a certificate to trust.
func (c *AdminClient) check(ctx context.Context, conn *net.Conn, address string, trust *tls.Config) error {
	if trust != nil {
		trust = trust.Clone()
		if host, _, err := net.SplitHostPort(address); err == nil && trust.ServerName == "" {
			trust.ServerName = host
		}
		secured := tls.Client(*conn, trust)
		if err := secured.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("connect to the admin side: %w", err)
		}
		*conn = secured
		return nil
	}
	secret := datadir.Secret(c.o.DataDir)
	if c.o.open || c.o.ByAddress && c.o.Token == "" {
		return nil
	}
	if secret == nil || !proves(*conn, secret) {
		return ErrStranger
	}
	return nil
}

// proves reports whether the other side of a connection knows a secret.
func proves(conn net.Conn, secret []byte) bool {
	nonce := make([]byte, admin.ChallengeSize/2)
	_, _ = rand.Read(nonce) // never fails
	challenge, at := hex.EncodeToString(nonce), conn.RemoteAddr().String()
	_ = conn.SetDeadline(time.Now().Add(proofTimeout))
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	if _, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n%s: %s\r\n\r\n", at, admin.ChallengeHeader, challenge); err != nil {
		return false
	}
	answer := bufio.NewReader(io.LimitReader(conn, 64<<10))
	resp, err := http.ReadResponse(answer, nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	// Read the rest of the answer only: the connection stays in use.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Close || answer.Buffered() > 0 {
		return false
	}
	return hmac.Equal([]byte(admin.Proof(secret, challenge, at, conn.LocalAddr().String())), []byte(resp.Header.Get(admin.ProofHeader)))
}
