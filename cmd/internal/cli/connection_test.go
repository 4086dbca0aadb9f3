package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestMissingConsentIsReported checks that only the step of the consent fails.
func TestMissingConsentIsReported(t *testing.T) {
	g, err := graphititest.Start(graphititest.Options{})
	must(t, err)
	t.Cleanup(func() { g.Close() })
	for _, consent := range []bool{true, false} {
		cfg, err := config.Load(config.Sources{Flags: map[string]string{"memory.endpoint": g.URL(), "memory.consent": strconv.FormatBool(consent), "data_dir": t.TempDir()}})
		must(t, err)
		m, err := ConnectMemory(cfg, func() *config.Config { return cfg }, nil)
		must(t, err)
		var out strings.Builder
		if err := TryConnection(t.Context(), &out, m, cfg, true, false); err != nil {
			t.Errorf("%v: %s", err, out.String())
		}
		if said := strings.Contains(out.String(), "! consent: not given"); said == consent {
			t.Errorf("consent %v: %s", consent, out.String())
		}
		must(t, m.Memory().Close())
	}
}

// TestReachable: a command connects to this machine also where the proxy listens
// on all addresses, as in a container.
func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:1": "127.0.0.1:1", ":1": "127.0.0.1:1", "[::]:1": "[::1]:1", "10.0.0.1:1": "10.0.0.1:1", "[fe80::1]:1": "[fe80::1]:1", "name:1": "name:1",
	} {
		if got := Reachable(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

// TestNameThatClientsCanUse checks that a wildcard is never used as an address, and does
// not hide a name after it.
func TestNameThatClientsCanUse(t *testing.T) {
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	for name, tc := range map[string]struct {
		names []string
		ips   []net.IP
		want  string
	}{
		"a name":                           {[]string{"proxy.test"}, loopback, "proxy.test"},
		"a pattern before a name":          {[]string{"*.proxy.test", "proxy.test"}, nil, "proxy.test"},
		"a pattern and an address":         {[]string{"*.proxy.test"}, loopback, "127.0.0.1"},
		"an address":                       {nil, loopback, "127.0.0.1"},
		"only a pattern":                   {[]string{"*.proxy.test"}, nil, ""},
		"nothing that a client goes by":    {nil, nil, ""},
		"names in the certificate's order": {[]string{"a.test", "b.test"}, nil, "a.test"},
	} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: tc.names, IPAddresses: tc.ips}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		must(t, err)
		file := filepath.Join(t.TempDir(), "cert.pem")
		must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		if got := CertificateName(file); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := CertificateName(filepath.Join(t.TempDir(), "missing.pem")); got != "" {
		t.Errorf("without a certificate: %q", got)
	}
}
