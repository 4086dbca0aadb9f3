package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Options has the address of a service, and options for its client.
type Options struct {
	Endpoint string        // base address
	APIKey   func() string // returns a bearer token, or ""; nil sends none

	Headers     []string // further headers as Name=file, with the file of each value
	Certificate string   // file of the client's certificate and key, or ""

	GetMemory bool // a group is searched by POST /get-memory, which only REST has

	// Called is called after each call to the service, with its name and its outcome; nil
	// calls nothing.
	Called func(call string, o Outcome)
}

// Outcome is the outcome of a call, for metrics.
type Outcome string

// The outcomes of calls. Failed means that the service reports a fault of its own.
const (
	Succeeded   Outcome = "ok"
	Refused     Outcome = "refused"
	Failed      Outcome = "failed"
	TimedOut    Outcome = "timeout"
	Canceled    Outcome = "canceled"
	Unreachable Outcome = "unreachable"
	Unreadable  Outcome = "unreadable"
)

// Note reports a finished call.
func (o *Options) Note(call string, err error) {
	if o.Called != nil {
		o.Called(call, outcomeOf(err))
	}
}

func outcomeOf(err error) Outcome {
	var status *graphiti.StatusError
	var to net.Error
	switch {
	case err == nil:
		return Succeeded
	case errors.As(err, &status) && status.Code >= http.StatusInternalServerError:
		return Failed
	case errors.As(err, &status):
		return Refused
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &to) && to.Timeout():
		return TimedOut
	case to != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Unreachable
	}
	return Unreadable
}

// Dial checks the address and prepares a client for it. The client connects on first use,
// sends the key, and follows no redirect. base may contain a password and must not be shown; shown is base without
// its user and password.
func Dial(o Options) (base *url.URL, shown string, client *http.Client, err error) {
	base, err = url.Parse(o.Endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, "", nil, errors.New("the memory's endpoint is not an http:// or https:// address")
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, "", nil, errors.New("the memory's endpoint must end with its path: paths are added to it")
	}
	without := *base
	without.User = nil
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 16, 64
	t.MaxResponseHeaderBytes = 64 << 10
	for _, h := range o.Headers {
		if name, file, ok := strings.Cut(h, "="); !ok || name == "" || file == "" {
			return nil, "", nil, fmt.Errorf("memory.headers: %q has no file; write e.g. X-Access=/run/secrets/access", h)
		}
	}
	if o.Certificate != "" {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(o.Certificate, o.Certificate)
			if err != nil {
				err = graphiti.NewFileError("memory.client_certificate", err, "write a certificate and its key into "+o.Certificate+", in PEM")
			}
			return &c, err
		}}
	}
	return base, without.String(), &http.Client{
		Transport:     &withKey{t, o.APIKey, o.Headers},
		CheckRedirect: graphiti.NoRedirect,
	}, nil
}

// withKey adds the key and the further headers to requests.
type withKey struct {
	*http.Transport
	key     func() string
	headers []string
}

func (t *withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	graphiti.SetBearer(r.Header, t.key)
	for _, h := range t.headers {
		name, file, _ := strings.Cut(h, "=")
		value, err := os.ReadFile(file)
		if value = bytes.TrimSpace(value); err == nil && (len(value) == 0 || bytes.ContainsAny(value, "\r\n")) {
			err = errors.New("not one line")
		}
		if err != nil {
			return nil, graphiti.NewFileError("memory.headers", err, "write the value into "+file+", in one line")
		}
		r.Header.Set(name, string(value))
	}
	return t.Transport.RoundTrip(r)
}

// StatusError returns the error for an unsuccessful answer. It closes the body.
func StatusError(resp *http.Response) error {
	defer resp.Body.Close()
	detail, _ := io.ReadAll(io.LimitReader(resp.Body, MaxDetailBytes)) // a partial text is enough
	return &graphiti.StatusError{Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header), Detail: string(detail)}
}

// ToolError returns the error for a tool's failure, with the equivalent status.
func ToolError(code int, detail string) error {
	return &graphiti.StatusError{Code: code, Detail: graphiti.Truncate(detail, MaxDetailBytes)}
}
