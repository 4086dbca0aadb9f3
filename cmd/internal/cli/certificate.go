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
	"sync/atomic"
)

// ServerCertificate returns the TLS configuration of a listener, or nil if cert is empty. It reads
// the files for each connection. If it cannot read them, the previous certificate stays in use.
func ServerCertificate(cert, key string, log *slog.Logger) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert, tls.key: %w; write the files of a certificate and of its key, in PEM", err)
	}
	var last atomic.Pointer[tls.Certificate]
	var broken atomic.Bool
	last.Store(&pair)
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err == nil {
			last.Store(&pair)
		}
		if before := broken.Swap(err != nil); err != nil && !before {
			log.Warn("reload certificate failed, the old one stays in use", "error", err)
		}
		return last.Load(), nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: []string{"http/1.1"}}, nil
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
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: append(namesIn(text), "")[0]}, nil
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
