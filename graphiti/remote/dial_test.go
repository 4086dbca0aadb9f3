package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// TestDial checks that a client sends the headers in its files and its certificate, and that the error
// of a refused certificate, or of one of these files, names its remedy.
func TestDial(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	got := ""
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Access") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	must(t, err)
	both := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	none := filepath.Join(dir, "none")
	access := func(name, text string) []string { return []string{"X-Access=" + file(name, text)} }
	for _, tc := range []struct {
		name      string
		headers   []string
		cert      string
		known     bool // the server's authority is known
		header    string
		err, todo string
	}{
		{"all", access("access", "abc\n"), file("cert.pem", both), true, "abc", "", ""},
		{"an unknown authority", nil, file("cert.pem", both), false, "", "unknown authority", "SSL_CERT_FILE"},
		{"no client certificate", nil, "", true, "", "certificate required", "memory.client_certificate"},
		{"no file of a header", []string{"X-Access=" + none}, "", true, "", "memory.headers: open " + none + ": no such file", "write the value into " + none},
		{"an empty header", access("empty", "\n"), "", true, "", "memory.headers: not one line", "write the value into " + dir},
		{"a header of two lines", access("two", "a\nb"), "", true, "", "memory.headers: not one line", "write the value into " + dir},
		{"no file of a certificate", nil, none, true, "", "memory.client_certificate: open " + none + ": no such file", "write a certificate and its key into " + none},
		{"a certificate without its key", nil, file("half.pem", both[:strings.Index(both, "-----BEGIN PRIVATE")]), true, "", "memory.client_certificate: tls: ", "write a certificate and its key into " + dir},
		{"a header without a file", []string{"X-Access"}, "", true, "", "has no file", ""},
	} {
		got = ""
		_, _, client, err := Dial(Options{Endpoint: s.URL, Headers: tc.headers, Certificate: tc.cert})
		if err == nil {
			transport := client.Transport.(*withKey).Transport
			if transport.TLSClientConfig == nil {
				transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			if tc.known {
				transport.TLSClientConfig.RootCAs = x509.NewCertPool()
				transport.TLSClientConfig.RootCAs.AddCert(s.Certificate())
			}
			var r *http.Request
			if r, err = http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL, http.NoBody); err != nil {
				t.Fatal(err)
			}
			var resp *http.Response
			if resp, err = client.Do(r); err == nil {
				resp.Body.Close()
			}
			client.CloseIdleConnections()
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || got != tc.header {
			t.Errorf("%s: %v, header %q; want %q, %q", tc.name, err, got, tc.err, tc.header)
		}
		if todo := graphiti.LocalRemedy(err); !strings.Contains(todo, tc.todo) || tc.todo == "" && todo != "" {
			t.Errorf("%s: to do %q, want %q", tc.name, todo, tc.todo)
		}
		if strings.HasPrefix(tc.err, "memory.") != graphiti.Unsent(err) {
			t.Errorf("%s: unsent: %v", tc.name, graphiti.Unsent(err))
		}
	}
}
