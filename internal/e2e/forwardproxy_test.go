//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

var must = helptest.Must

// elsewhere starts a server that forwards to target, on an address of this machine other
// than the loopback, which is never reached through a forward proxy.
func elsewhere(t *testing.T, target string, secured bool) *httptest.Server {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	var ln net.Listener
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			if ln, err = net.Listen("tcp", net.JoinHostPort(n.IP.String(), "0")); err == nil {
				break
			}
		}
	}
	if ln == nil {
		t.Skip("SKIPPED LOUDLY: this machine has the loopback address only, which no forward proxy is asked for")
	}
	u, err := url.Parse(target)
	must(t, err)
	s := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(u))
	s.Listener.Close()
	s.Listener = ln
	if secured {
		s.TLS = certificateFor(t, ln.Addr().(*net.TCPAddr).IP)
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// TestForwardProxy checks that the proxy reaches model and memory through
// Debian's tinyproxy, and that it trusts the model's certificate from SSL_CERT_FILE.
func TestForwardProxy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tinyproxy"); err != nil {
		t.Skip("SKIPPED LOUDLY: tinyproxy is not installed; run e2e/packages.sh")
	}
	provider, err := proxytest.Start()
	must(t, err)
	t.Cleanup(func() { _ = provider.Close() })
	memory, err := graphititest.Start(graphititest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = memory.Close() })
	model, graph := elsewhere(t, provider.URL(), true), elsewhere(t, memory.URL(), false)

	dir := t.TempDir()
	trusted := filepath.Join(dir, "trusted.pem")
	write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: model.TLS.Certificates[0].Certificate[0]})), trusted)
	forward, log := freePort(t), filepath.Join(dir, "tinyproxy.log")
	conf := filepath.Join(dir, "tinyproxy.conf")
	write(t, fmt.Sprintf("Port %s\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nBasicAuth me s3cret\nLogFile %q\nLogLevel Connect\n", port(forward), log), conf)
	tiny := exec.Command("tinyproxy", "-d", "-c", conf)
	must(t, tiny.Start())
	t.Cleanup(func() { _ = tiny.Process.Kill(); _ = tiny.Wait() })
	until(t, "tinyproxy", func() bool {
		c, err := net.Dial("tcp", forward)
		if err == nil {
			c.Close()
		}
		return err == nil
	})

	client, admin := freePort(t), freePort(t)
	p := exec.Command(binary, "serve", "--set", "listen="+client, "--set", "admin.listen="+admin, "--set", "data_dir="+filepath.Join(dir, "data"),
		"--set", "upstream.openai="+model.URL, "--set", "memory.backend=graphiti", "--set", "memory.endpoint="+graph.URL, "--set", "memory.consent=true")
	p.Stderr = os.Stderr
	by := "http://me:s3cret@" + forward
	p.Env = append(os.Environ(), "HTTPS_PROXY="+by, "HTTP_PROXY="+by, "NO_PROXY=", "SSL_CERT_FILE="+trusted)
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	until(t, "the proxy", func() bool {
		resp, err := http.Get("http://" + admin + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	for range 2 { // the second request reuses the tunnel
		resp, err := http.Post("http://"+client+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"My cat is called Miso."}]}`))
		must(t, err)
		// A client that leaves before the end of the answer costs a connection to the
		// model.
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v, want no error, Status 200", resp.Status, err)
		}
	}
	connect, write := "CONNECT "+model.Listener.Addr().String(), "POST "+graph.URL+"/messages"
	until(t, "both ways in tinyproxy's log", func() bool {
		said := read(t, log)
		return strings.Count(said, connect) == 1 && strings.Contains(said, write)
	})
}

// certificateFor returns a TLS configuration with a self-signed certificate for an address.
func certificateFor(t *testing.T, ip net.IP) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "model"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{ip}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

var until = helptest.Until

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
