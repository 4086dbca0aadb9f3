package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// newHasty starts an upstream that answers 101 after the head of a request and then calls
// then.
func newHasty(t testing.TB, then func(c net.Conn, br *bufio.Reader)) string {
	t.Helper()
	return newEager(t, func(c net.Conn, br *bufio.Reader) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		then(c, br)
	})
}

// TestUpgradeWithABody checks that the new protocol begins after the request's body, even
// if the upstream answers 101 before it has read the body.
func TestUpgradeWithABody(t *testing.T) {
	const size = 1 << 20
	body := strings.Repeat("b", size)
	request := fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n", size)
	t.Run("upstream agrees at once", func(t *testing.T) {
		w := newHasty(t, func(c net.Conn, br *bufio.Reader) {
			if _, err := io.CopyN(io.Discard, br, size); err != nil {
				t.Errorf("the body: %v", err)
			}
			hello := make([]byte, 5)
			_, _ = io.ReadFull(br, hello)
			_, _ = c.Write(hello)
		})
		s, _ := start(t, w)
		for range 5 { // calls are reused
			got, err := talk(t, s, request+body+"hello")
			want := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello"
			if got != want || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
	t.Run("upstream does not take the body", func(t *testing.T) {
		w := newHasty(t, func(net.Conn, *bufio.Reader) {})
		s, _ := start(t, w)
		c := dial(t, s)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, err := io.WriteString(c, strings.Replace(request, "Content-Length: ", "Content-Length: 9", 1))
			for err == nil { // more than all buffers hold
				_, err = io.WriteString(c, body)
			}
		}()
		resp, err := http.ReadResponse(newReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusBadGateway {
			t.Errorf("got %v, %v, want no error, Status 502", resp, err)
		}
		c.Close()
		<-sent
	})
	t.Run("client leaves in the body", func(t *testing.T) {
		gone := make(chan struct{})
		w := newHasty(t, func(_ net.Conn, br *bufio.Reader) {
			_, _ = io.Copy(io.Discard, br)
			close(gone)
		})
		s, _ := start(t, w)
		c := dial(t, s)
		_, _ = io.WriteString(c, request+body[:size/2])
		c.Close()
		<-gone
	})
	t.Run("nobody asked for an upgrade", func(t *testing.T) {
		w := newHasty(t, func(_ net.Conn, br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) })
		s, _ := start(t, w)
		for range 5 {
			c := dial(t, s)
			_, _ = io.WriteString(c, strings.Replace(request, "Connection: Upgrade\r\nUpgrade: websocket\r\n", "", 1)+body[:100<<10])
			resp, err := http.ReadResponse(newReader(c), nil)
			if err != nil || resp.StatusCode != http.StatusBadGateway {
				t.Errorf("got %v, %v, want no error, Status 502", resp, err)
			}
			c.Close()
		}
	})
}
