package service

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// byteOrderMark begins texts of some editors.
const byteOrderMark = "\ufeff"

// ReadLines finds out the format of a file and calls f for each message in it, with the
// line number, or in an export with the number of the message. It holds no more than one
// item at a time.
func ReadLines(r io.Reader, f func(int, Line) error) error {
	whole := &bounded{r: r, end: maxExport, most: maxExport}
	in := bufio.NewReaderSize(whole, 1<<20)
	if b, err := in.Peek(len(byteOrderMark)); err == nil && string(b) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // it was peeked
	}
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
			break
		}
	}
	var b []byte
	for ; ; n++ {
		var err error
		if b, err = lineOf(in, b); errors.Is(err, errItem) {
			return fmt.Errorf("line %d cannot be read: %w", n, err)
		}
		if line := bytes.TrimSpace(b); len(line) > 0 {
			l, err := readLine(line)
			if err != nil {
				return fmt.Errorf("line %d cannot be read: %w; write an object such as {\"role\":\"user\",\"content\":\"…\"}, see memory import --help", n, err)
			}
			if err := f(n, l); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the file: %w", err)
		}
	}
}

// readLine reads a line, or a Record: only a Record has a field where.
func readLine(line []byte) (l Line, err error) {
	var r Record
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
		l = r.line()
	}
	return l, err
}

// exported is a conversation as either account's export has it.
type exported struct {
	// ChatGPT's
	ID      string                 `json:"conversation_id"`
	Mapping map[string]exportedTip `json:"mapping"`
	Current string                 `json:"current_node"`

	// Claude's
	UUID     string `json:"uuid"`
	Messages []struct {
		UUID    string `json:"uuid"`
		Text    string `json:"text"`
		Sender  string `json:"sender"`
		Created string `json:"created_at"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"chat_messages"`
}

type exportedTip struct {
	Parent  string `json:"parent"`
	Message *struct {
		Author struct {
			Role string `json:"role"`
		} `json:"author"`
		Created float64 `json:"create_time"`
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
	} `json:"message"`
}

// readExport reads the conversations of an account one by one.
func readExport(r io.Reader, f func(int, Line) error) error {
	one := &bounded{r: r, end: maxItem, most: maxExport}
	d := json.NewDecoder(one)
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	message := 0
	for n := 1; ; n++ {
		one.item(d.InputOffset())
		if !d.More() {
			return endOf(d)
		}
		var e exported
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("conversation %d of the export cannot be read: %w", n, err)
		}
		if e.Mapping == nil && e.Messages == nil {
			return fmt.Errorf("item %d is not a conversation of ChatGPT or Claude; JSON Lines have one object in each line, without brackets around them", n)
		}
		for _, l := range append(e.chatGPT(), e.claude()...) {
			message++
			if err := f(message, l); err != nil {
				return err
			}
		}
	}
}

// endOf is what the end of an export says: one that was cut off has none.
func endOf(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the export ends in the middle: %w", err)
	}
	return nil
}

// chatGPT is the branch that was shown last, from its beginning.
func (e *exported) chatGPT() (lines []Line) {
	for id, steps := e.Current, 0; id != "" && steps <= len(e.Mapping); steps++ {
		tip := e.Mapping[id]
		if m := tip.Message; m != nil && (m.Author.Role == "user" || m.Author.Role == "assistant") {
			var texts []string
			for _, p := range m.Content.Parts {
				var text string
				if json.Unmarshal(p, &text) == nil && strings.TrimSpace(text) != "" { // others are pictures
					texts = append(texts, text)
				}
			}
			if len(texts) > 0 {
				l := Line{Role: m.Author.Role, Content: strings.Join(texts, "\n"), Session: "chatgpt-" + e.ID, ID: id}
				if m.Created > 0 {
					l.Timestamp = time.UnixMilli(int64(m.Created * 1000)).UTC().Format(time.RFC3339)
				}
				lines = append(lines, l)
			}
		}
		id = tip.Parent
	}
	slices.Reverse(lines)
	return lines
}

func (e *exported) claude() (lines []Line) {
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
		role := map[string]string{"human": "user", "assistant": "assistant"}[m.Sender]
		if role == "" || strings.TrimSpace(text) == "" {
			continue
		}
		l := Line{Role: role, Content: text, Session: "claude-" + e.UUID, ID: m.UUID}
		if t, err := time.Parse(time.RFC3339, m.Created); err == nil {
			l.Timestamp = t.UTC().Format(time.RFC3339)
		}
		lines = append(lines, l)
	}
	return lines
}
