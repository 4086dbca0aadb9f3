package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// answer is the upstream's answer to a request without a stream: 3 KiB.
var answer = func() []byte {
	body := `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("All work and no play. ", 130) + `"},"finish_reason":"stop"}]}`
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// chunk is one event of a stream, in its transfer coding.
var chunk = framed(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"token "},"finish_reason":null}]}`)

var lastChunks = framed(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) + framed("data: [DONE]") + "0\r\n\r\n"

func framed(event string) string {
	event += "\n\n"
	return strconv.FormatInt(int64(len(event)), 16) + "\r\n" + event + "\r\n"
}

// serveUpstream answers on address, as cheaply as possible. The request's X-Chunks and X-Pace
// fields set the number of chunks and their interval.
func serveUpstream(address string) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go answerAll(c)
	}
}

func answerAll(c net.Conn) {
	defer c.Close()
	br := bufio.NewReaderSize(c, 8<<10)
	for {
		length, chunks, pace := 0, 0, time.Duration(0)
		for {
			line, err := br.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= 2 {
				break
			}
			name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
			switch strings.ToLower(string(name)) {
			case "content-length":
				length, _ = strconv.Atoi(string(value))
			case "x-chunks":
				chunks, _ = strconv.Atoi(string(value))
			case "x-pace":
				pace, _ = time.ParseDuration(string(value))
			}
		}
		if _, err := io.CopyN(io.Discard, br, int64(length)); err != nil {
			return
		}
		if chunks == 0 {
			if _, err := c.Write(answer); err != nil {
				return
			}
			continue
		}
		if _, err := io.WriteString(c, streamHead); err != nil {
			return
		}
		for range chunks {
			time.Sleep(pace)
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
		if _, err := io.WriteString(c, lastChunks); err != nil {
			return
		}
	}
}

// serveRelay is the simplest proxy with fasthttp: it copies the request and streams the
// answer.
func serveRelay(address, upstream string) {
	client := &fasthttp.HostClient{
		Addr: upstream, StreamResponseBody: true, MaxConns: 1 << 16, MaxResponseBodySize: 1,
		DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true, NoDefaultUserAgentHeader: true,
	}
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			req, resp := fasthttp.AcquireRequest(), &ctx.Response
			defer fasthttp.ReleaseRequest(req)
			ctx.Request.CopyTo(req)
			req.SetHost(upstream)
			resp.ImmediateHeaderFlush = true
			if err := client.Do(req, resp); err != nil {
				ctx.Error(err.Error(), fasthttp.StatusBadGateway)
			}
		},
		DisableHeaderNamesNormalizing: true, NoDefaultServerHeader: true, NoDefaultDate: true, NoDefaultContentType: true,
		MaxRequestBodySize: 64 << 20,
	}
	log.Fatal(server.ListenAndServe(address))
}
