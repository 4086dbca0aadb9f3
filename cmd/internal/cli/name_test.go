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
	"testing"
)

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
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: tc.names, IPAddresses: tc.ips}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "cert.pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := CertificateName(file); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := CertificateName(filepath.Join(t.TempDir(), "missing.pem")); got != "" {
		t.Errorf("without a certificate: %q", got)
	}
}
