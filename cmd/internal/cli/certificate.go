package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// certificateAge is the time between two checks for changes of a certificate's files.
const certificateAge = time.Second

// certificate is a certificate from two files, which it reads again after a change. If it
// cannot read them, the previous certificate stays in use. It is safe for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex // guards the fields below
	current *tls.Certificate
	changed [2]time.Time
	looked  time.Time
}

// ServerCertificate returns the TLS configuration of a listener, or nil if cert is empty.
func ServerCertificate(cert, key string, log *slog.Logger) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"http/1.1"}}, nil
}

// read reads the files.
func (c *certificate) read() error {
	changed, err := c.times()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("tls.cert, tls.key: %w; write the files of a certificate and of its key, in PEM", err)
	}
	c.current, c.changed = &pair, changed
	return nil
}

func (c *certificate) times() (changed [2]time.Time, err error) {
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return changed, fmt.Errorf("tls.cert, tls.key: %w", err)
		}
		changed[i] = info.ModTime()
	}
	return changed, nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) > certificateAge {
		c.looked = now
		if changed, err := c.times(); err != nil || changed != c.changed {
			if err == nil {
				err = c.read()
			}
			if err != nil {
				c.log.Warn("reload certificate failed, the old one stays in use", "error", err)
			} else {
				c.log.Info("reloaded certificate")
			}
		}
	}
	return c.current, nil
}

// TrustCertificate returns the TLS configuration of a client that trusts the configured
// certificate, which may be self-signed.
func TrustCertificate(cert string) (*tls.Config, error) {
	text, err := os.ReadFile(cert)
	if err != nil {
		return nil, fmt.Errorf("tls.cert: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("tls.cert: there is no certificate in it")
	}
	// The name in it need not be that of a loopback address.
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: nameIn(text)}, nil
}

// namesIn returns the names and addresses in a certificate.
func namesIn(text []byte) []string {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// nameIn returns the first name in a certificate, or "" without one.
func nameIn(text []byte) string {
	if names := namesIn(text); len(names) > 0 {
		return names[0]
	}
	return ""
}

// CertificateName returns a name in a certificate for clients to reach its server. It
// returns "" without a name or without a certificate. A pattern such as *.example.org does
// not count.
func CertificateName(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for _, name := range namesIn(text) {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	return ""
}
