package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// writeCertificate writes a self-signed certificate and its key, and returns their paths
// and a pool that trusts the certificate.
func writeCertificate(t *testing.T, dir string, serial int64) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "proxy"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"proxy.test"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	must(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	must(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{cert: text, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})} {
		writeFile(t, name, string(b))
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return cert, key, pool
}

// TestTLS checks that both listeners use TLS, also for streams, that the proxy loads a
// changed certificate but not a broken one, and that commands reach the admin side.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, pool := writeCertificate(t, dir, 1)
	w := start(t, t.TempDir(), map[string]string{"tls.cert": cert, "tls.key": key, "tls.listeners": "client,admin"})
	get := func(pool *x509.CertPool, address, path string) (int64, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}, Timeout: helptest.Patience}
		resp, err := client.Get("https://" + address + path)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, %v, want no error, Status 200", path, resp.StatusCode, err)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
	}
	clients, operators := w.app.proxy.Addr().String(), w.app.admin.Addr().String()
	for address, path := range map[string]string{clients: "/v1/models", operators: "/healthz"} {
		if serial, err := get(pool, address, path); err != nil || serial != 1 {
			t.Errorf("%s: certificate %d, %v", path, serial, err)
		}
	}
	resp, err := http.Post("http://"+clients+"/v1/chat/completions", "application/json", strings.NewReader(strings.Repeat("x", 100_000)))
	must(t, err)
	plain, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(plain), "https://") {
		t.Errorf("without TLS: %s %s, %v", resp.Status, plain, err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err = client.Post("https://"+clients+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	must(t, err)
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	client.CloseIdleConnections()
	if err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
		t.Errorf("a stream: %q, %v", b, err)
	}
	if s, err := cli.Ask(t.Context(), adminOf(w), service.Status, service.StatusRequest{Fresh: true}); err != nil || !s.Ready {
		t.Errorf("status: %+v, %v", s, err)
	}

	writeFile(t, key, "broken")
	waitUntil(t, "the broken file to be seen", func() bool {
		if serial, err := get(pool, clients, "/v1/models"); err != nil || serial != 1 {
			t.Fatalf("with a broken file: certificate %d, %v", serial, err)
		}
		return strings.Contains(w.log.String(), "reload certificate failed")
	})
	_, _, pool = writeCertificate(t, dir, 2)
	waitUntil(t, "the other certificate", func() bool {
		serial, err := get(pool, clients, "/v1/models")
		return err == nil && serial == 2
	})
}

// TestTestCommandWithTLSFlags checks that the test command names the flags that it needs if
// serve has TLS from flags, and that it works with them.
func TestTestCommandWithTLSFlags(t *testing.T) {
	t.Parallel()
	cert, key, _ := writeCertificate(t, t.TempDir(), 1)
	w := start(t, t.TempDir(), map[string]string{"tls.cert": cert, "tls.key": key})
	args := []string{"test", "--set", "data_dir=" + w.dir, "--set", "admin.listen=" + w.app.admin.Addr().String(), "--set", "listen=" + w.app.proxy.Addr().String()}
	_, err := command(t, w.dir, args...)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"tls.cert": cert, "tls.key": key} {
		if !strings.Contains(err.Error(), "--set "+name+"=FILE") {
			t.Errorf("no %s in: %v", name, err)
		}
		args = append(args, "--set", name+"="+file)
	}
	// Only a provider's key is missing now.
	if _, err := command(t, w.dir, args...); err == nil || !strings.HasPrefix(err.Error(), "no upstream has a key") {
		t.Errorf("with both: %v", err)
	}
}
