package transcripts

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	importPeek = 64 << 10 // bytes that tell a conversation from a line
	maxItem    = 32 << 20 // bytes of a line, or of an export's conversation in the file
	maxExport  = 2 << 30  // bytes of a file, or of an unpacked archive
)

var (
	errItem   = fmt.Errorf("it is larger than %d MiB", maxItem>>20)
	errExport = fmt.Errorf("the file contains more than %d GiB; import it in parts", maxExport>>30)
)

// filled fills each read: a JSON decoder reads blanks again for each piece that it gets.
type filled struct{ io.Reader }

func (f filled) Read(p []byte) (int, error) {
	n, err := io.ReadFull(f.Reader, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Lines returns a function that finds out the format of a file and calls f for each message in it,
// with the line number, or in an export with the number of the message. It holds no more than one
// item at a time. It returns the number of messages of an export that it left out.
func Lines(r io.Reader) func(f func(int, service.Line) error) (left int, err error) {
	return func(f func(int, service.Line) error) (int, error) { return readLines(r, f) }
}

func readLines(r io.Reader, f func(int, service.Line) error) (left int, err error) {
	whole := &io.LimitedReader{R: transform.NewReader(r, unicode.BOMOverride(transform.Nop)), N: maxExport}
	defer func() {
		if whole.N <= 0 {
			err = errExport
		}
	}()
	in := bufio.NewReaderSize(filled{whole}, 1<<20)
	n := 1
	for b, err := in.ReadByte(); err == nil; b, err = in.ReadByte() {
		if b == '\n' {
			n++
		}
		if strings.IndexByte(" \t\r\n", b) < 0 {
			_ = in.UnreadByte() // it was read
			if b == '[' {
				return readExport(in, f)
			}
			first, _ := in.Peek(importPeek) // the file may be shorter
			if gjson.GetBytes(first, "mapping").Exists() || gjson.GetBytes(first, "chat_messages").Exists() {
				return readExport(io.MultiReader(strings.NewReader("["), in, strings.NewReader("]")), f)
			}
			break
		}
	}
	return 0, readJSONLines(in, n, f)
}

func readJSONLines(r io.Reader, n int, f func(int, service.Line) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxItem)
	for ; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		l, err := readRecord(line)
		if err != nil {
			return fmt.Errorf("line %d cannot be read: %w; write an object such as {\"role\":\"user\",\"content\":\"…\"}, see memory import --help", n, err)
		}
		if err := f(n, l); err != nil {
			return err
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d cannot be read: %w", n, errItem)
	case err != nil:
		return fmt.Errorf("read the file: %w", err)
	}
	return nil
}

// readRecord reads a line, or a Record: only a Record has a field where.
func readRecord(line []byte) (l service.Line, err error) {
	var r service.Record
	of := any(&l)
	if gjson.GetBytes(line, "where").Exists() && !gjson.GetBytes(line, "content").Exists() {
		of = &r
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err = d.Decode(of)
	if err == nil && d.More() {
		err = errors.New("unexpected text after the object")
	}
	if of == any(&r) {
		l = r.Line()
	}
	return l, err
}

// exported is a conversation of an export of ChatGPT or Claude.
type exported struct {
	// ChatGPT's
	ID        string                     `json:"conversation_id"`
	Mapping   map[string]exportedMessage `json:"mapping"`
	Current   string                     `json:"current_node"`
	Forgotten bool                       `json:"is_do_not_remember"`

	// Claude's
	UUID     string `json:"uuid"`
	Leaf     string `json:"current_leaf_message_uuid"`
	Messages []struct {
		UUID    string `json:"uuid"`
		Parent  string `json:"parent_message_uuid"` // "" if the export has no branches
		Text    string `json:"text"`
		Sender  string `json:"sender"`
		Created string `json:"created_at"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"chat_messages"`
}

type exportedMessage struct {
	Parent  string `json:"parent"`
	Message *struct {
		Author struct {
			Role string `json:"role"`
		} `json:"author"`
		Created float64 `json:"create_time"`
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		Metadata struct {
			Hidden bool `json:"is_visually_hidden_from_conversation"`
		} `json:"metadata"`
	} `json:"message"`
}

// node is a message in the tree of a conversation. Edits and repeated answers branch it.
type node struct {
	service.Line
	parent string
}

// readExport reads one conversation at a time, from one or more lists. It returns the
// number of messages that it left out.
func readExport(r io.Reader, f func(int, service.Line) error) (left int, err error) {
	one := &io.LimitedReader{R: r, N: maxItem}
	d := json.NewDecoder(one)
	message, n := 0, 0
	limited := func(err error) error {
		if one.N <= 0 {
			return errItem
		}
		return err
	}
	for {
		if t, err := d.Token(); errors.Is(err, io.EOF) && n > 0 {
			return left, nil
		} else if err != nil {
			return left, fmt.Errorf("read the export: %w", err)
		} else if t != json.Delim('[') {
			return left, fmt.Errorf("read the export: unexpected %v after %d conversations", t, n)
		}
		for one.N = maxItem; d.More(); one.N = maxItem {
			n++
			var e exported
			if err := d.Decode(&e); err != nil {
				return left, fmt.Errorf("conversation %d of the export cannot be read: %w", n, limited(err))
			}
			if e.Mapping == nil && e.Messages == nil {
				return left, fmt.Errorf("item %d is not a conversation of ChatGPT or Claude; JSON Lines have one object in each line, without brackets around them", n)
			}
			lines, omitted := e.lines()
			left += omitted
			for _, l := range lines {
				message++
				if err := f(message, l); err != nil {
					return left, err
				}
			}
		}
		if _, err := d.Token(); err != nil {
			return left, fmt.Errorf("the export ends in the middle: %w", limited(err))
		}
		n = max(n, 1)
	}
}

// lines returns the messages of the current branch, and the number of the person's and the
// model's other messages.
func (e *exported) lines() (lines []service.Line, left int) {
	nodes, current := e.claude(), e.Leaf
	if e.Mapping != nil {
		nodes, current = e.chatGPT(), e.Current
	}
	byID, parents, all := make(map[string]*node), make(map[string]bool), 0
	for i := range nodes {
		n := &nodes[i]
		byID[n.ID], parents[n.parent] = n, true
		if n.Content != "" || n.Role == "user" || n.Role == "unknown" {
			all++
		}
	}
	if byID[current] == nil { // not in the export: take the newest leaf
		for _, n := range nodes {
			if !parents[n.ID] {
				current = n.ID
			}
		}
	}
	if e.Forgotten {
		return nil, all
	}
	for n, steps := byID[current], 0; n != nil && steps < len(nodes); n, steps = byID[n.parent], steps+1 {
		if n.Content != "" {
			lines = append(lines, n.Line)
		}
	}
	slices.Reverse(lines)
	return lines, all - len(lines)
}

// chatGPT returns the nodes by time. Nodes without words of the person or the model have
// no content.
func (e *exported) chatGPT() (nodes []node) {
	for id, in := range e.Mapping {
		n := node{service.Line{Session: "chatgpt-" + e.ID, ID: id}, in.Parent}
		if m := in.Message; m != nil {
			if m.Created > 0 {
				n.Timestamp = time.UnixMilli(int64(m.Created * 1000)).UTC().Format(time.RFC3339)
			}
			if n.Role = cmp.Or(m.Author.Role, "unknown"); (n.Role == "user" || n.Role == "assistant") && !m.Metadata.Hidden {
				n.Content = typedOf(m.Content.Parts)
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.ID, b.ID))
	})
	return nodes
}

// typedOf returns the written and spoken words of a message. Other parts are pictures.
func typedOf(parts []json.RawMessage) string {
	var texts []string
	for _, p := range parts {
		part := gjson.ParseBytes(p)
		if part.Get("content_type").String() == "audio_transcription" {
			part = part.Get("text")
		}
		if part.Type == gjson.String && strings.TrimSpace(part.Str) != "" {
			texts = append(texts, part.Str)
		}
	}
	return strings.Join(texts, "\n")
}

// claude returns the nodes in the order of the export, which is by time.
func (e *exported) claude() (nodes []node) {
	before := ""
	for _, m := range e.Messages {
		text := m.Text
		if len(m.Content) > 0 {
			var texts []string
			for _, c := range m.Content {
				if c.Type == "text" {
					texts = append(texts, c.Text)
				}
			}
			text = strings.Join(texts, "\n")
		}
		n := node{service.Line{Session: "claude-" + e.UUID, ID: m.UUID, Role: map[string]string{"human": "user", "assistant": "assistant"}[m.Sender]}, cmp.Or(m.Parent, before)}
		if n.Role != "" && strings.TrimSpace(text) != "" {
			n.Content = text
		}
		if t, err := time.Parse(time.RFC3339, m.Created); err == nil {
			n.Timestamp = t.UTC().Format(time.RFC3339)
		}
		nodes, before = append(nodes, n), m.UUID
	}
	return nodes
}
