package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// parallel is the number of connections of flatOut.
const parallel = 32

// numbers numbers the requests to all targets, so that no two are equal.
var numbers atomic.Int64

// kept names the conversation with a single turn, which is sent repeatedly.
const kept = "kept"

// request returns a chat request of about size bytes, with its head. Its question is about
// the cat of teach.
func request(t *target, size, chunks int, pace time.Duration) []byte {
	id := t.history(int(numbers.Add(1)))
	const line = "We talked about the weather, the harvest and the price of bread.\\n"
	var messages strings.Builder
	messages.WriteString(`{"role":"system","content":"You are a helpful assistant."}`)
	for messages.Len()+600 < size {
		text := strings.Repeat(line, min(20, 1+(size-messages.Len())/4/len(line)))
		fmt.Fprintf(&messages, `,{"role":"user","content":"%s"},{"role":"assistant","content":"%s"}`, text, text)
	}
	body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[%s,{"role":"user","content":"Conversation %s: what is my cat called?"}]}`,
		chunks > 0, messages.String(), id)
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAuthorization: Bearer sk-bench\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: %d\r\n", len(body))
	if id == kept {
		head += "X-Graphiti-Session: bench\r\n" // the same turn of the same conversation, again
	}
	if chunks > 0 {
		head += fmt.Sprintf("X-Chunks: %d\r\nX-Pace: %s\r\n", chunks, pace)
	}
	return []byte(head + "\r\n" + body)
}

// conn is a client's connection. If the target has ended it, the next request opens another.
type conn struct {
	net.Conn
	br    *bufio.Reader
	to    *target
	ended bool // the last answer had Connection: close
}

func connect(t *target) (*conn, error) {
	c, err := net.Dial("tcp", t.address)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return nil, err
	}
	return &conn{Conn: c, br: bufio.NewReaderSize(c, 4<<10), to: t}, nil
}

func (c *conn) send(request []byte) error {
	if c.ended {
		c.Close()
		again, err := connect(c.to)
		if err != nil {
			return err
		}
		*c = *again
	}
	_, err := c.Write(request)
	return err
}

// head reads the head of an answer, and returns an error unless its status is 200.
func (c *conn) head() (length int, memory string, err error) {
	defer func() {
		if err == nil {
			c.to.blocks.count(memory)
		}
	}()
	line, err := c.br.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	if !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		return 0, "", fmt.Errorf("answered %q", strings.TrimSpace(line))
	}
	for {
		b, err := c.br.ReadSlice('\n')
		if err != nil {
			return 0, "", err
		}
		if len(b) <= 2 {
			return length, memory, nil
		}
		name, value, _ := bytes.Cut(b[:len(b)-2], []byte(": "))
		switch strings.ToLower(string(name)) { // HAProxy sends lower-case names
		case "content-length":
			length, _ = strconv.Atoi(string(value))
		case "connection":
			c.ended = string(value) == "close"
		case "x-graphiti-memory":
			memory = string(value)
		}
	}
}

// ask sends a request and reads the whole answer.
func (c *conn) ask(request []byte) (memory string, err error) {
	if err := c.send(request); err != nil {
		return "", err
	}
	length, memory, err := c.head()
	if err != nil {
		return "", err
	}
	if want := len(answer) - bytes.Index(answer, []byte("\r\n\r\n")) - 4; length != want {
		return "", fmt.Errorf("the answer has %d bytes instead of %d", length, want)
	}
	_, err = c.br.Discard(length)
	return memory, err
}

// stream sends a request and reads the whole stream, which must have all chunks. It returns
// the arrival time of the first chunk.
func (c *conn) stream(request []byte, chunks int) (first time.Time, err error) {
	if err := c.send(request); err != nil {
		return first, err
	}
	if _, _, err := c.head(); err != nil {
		return first, err
	}
	events := 0
	for {
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return first, fmt.Errorf("the stream broke off: %w", err)
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			if events == 0 {
				first = time.Now()
			}
			events++
		}
		if string(line) == "0\r\n" {
			break
		}
	}
	if _, err := c.br.ReadSlice('\n'); err != nil {
		return first, err
	}
	if events != chunks+2 {
		return first, fmt.Errorf("the stream had %d events instead of %d", events, chunks+2)
	}
	return first, nil
}

// flatOut sends requests for d as fast as possible, and returns their number.
func flatOut(t *target, size int, d time.Duration) (int64, error) {
	var n atomic.Int64
	end := time.Now().Add(d)
	err := together(parallel, func(int) error {
		c, err := connect(t)
		if err != nil {
			return err
		}
		defer c.Close()
		r := request(t, size, 0, 0)
		for time.Now().Before(end) {
			if t.history(1) != t.history(2) {
				r = request(t, size, 0, 0)
			}
			if _, err := c.ask(r); err != nil {
				return err
			}
			n.Add(1)
		}
		return nil
	})
	return n.Load(), err
}

// atRate sends rate requests a second and returns their latencies in microseconds, measured
// from the moment of sending.
func atRate(t *target, size, rate int, d time.Duration) ([]float64, error) {
	const workers = 8
	var mu sync.Mutex
	var out []float64
	begin := time.Now()
	err := together(workers, func(w int) error {
		c, err := connect(t)
		if err != nil {
			return err
		}
		defer c.Close()
		r := request(t, size, 0, 0)
		for i := w; ; i += workers {
			due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
			if due.Sub(begin) > d {
				return nil
			}
			time.Sleep(time.Until(due))
			sent := time.Now() // the generator's own lateness is not the target's
			if _, err := c.ask(r); err != nil {
				return err
			}
			took := float64(time.Since(sent).Nanoseconds()) / 1e3
			mu.Lock()
			out = append(out, took)
			mu.Unlock()
		}
	})
	return out, err
}

// firstChunks returns, for n consecutive streams, the time from the request to the first
// chunk, in microseconds.
func firstChunks(t *target, n int) ([]float64, error) {
	c, err := connect(t)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := request(t, 1<<10, 1, 0)
	var out []float64
	for range n {
		sent := time.Now()
		first, err := c.stream(r, 1)
		if err != nil {
			return nil, err
		}
		out = append(out, float64(first.Sub(sent).Nanoseconds())/1e3)
	}
	return out, nil
}

// manyStreams holds many streams open at the same time, and returns the target's peak memory
// meanwhile.
func manyStreams(t *target, o options) (most int64, err error) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				most = max(most, t.memory())
			}
		}
	})
	err = together(o.streams, func(i int) error {
		time.Sleep(time.Duration(i) * 200 * time.Microsecond) // avoid a burst of connects
		c, err := connect(t)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.stream(request(t, 1<<10, o.chunks, o.pace), o.chunks)
		return err
	})
	close(done)
	watch.Wait()
	return most, err
}

// together runs n workers and returns their errors.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// teach gives the memory a fact about a cat, and waits until the memory recalls it.
func teach(t *target) error {
	body := `{"model":"m","messages":[{"role":"user","content":"My cat is called Miso."}]}`
	r := fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	c, err := connect(t)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ask(r); err != nil {
		return err
	}
	for i := range 100 {
		time.Sleep(20 * time.Millisecond)
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"Try %d: what is my cat called?"}]}`, i)
		memory, err := c.ask(fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		if err != nil {
			return err
		}
		if hasBlock(memory) {
			t.blocks.take()
			return nil
		}
	}
	return errors.New("the memory does not come back")
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	return s[int(q*float64(len(s)-1))]
}
