package transcripts

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func readCline(s *source, t *turns) error {
	doc, err := s.whole()
	if err != nil {
		return err
	}
	if doc.Get("agent").Str != "lead" {
		return s.ofSubagent()
	}
	t.Session = doc.Get("sessionId").Str
	if about, err := (&source{path: strings.TrimSuffix(s.path, ".messages.json") + ".json"}).whole(); err == nil {
		t.Dir = about.Get("cwd").Str
	}
	doc.Get("messages").ForEach(func(_, m gjson.Result) bool {
		text, at := texts(m.Get("content")), timeOf(m.Get("ts"))
		switch m.Get("role").Str {
		case "user":
			// The wire has the words without the wrapper.
			if _, inside, ok := strings.Cut(text, "<user_input"); ok {
				_, inside, _ = strings.Cut(inside, ">")
				inside, _, _ = strings.Cut(inside, "</user_input>")
				t.say(m.Get("id").Str, inside, at)
			}
		case "assistant":
			t.answer("", text, at, ids(m.Get("content"), "tool_use")...)
		}
		return true
	})
	return nil
}

// readContinue reads a session without times: its turns get the file's time.
func readContinue(s *source, t *turns) error {
	doc, err := s.whole()
	if err != nil {
		return err
	}
	t.Session, t.Dir = doc.Get("sessionId").Str, doc.Get("workspaceDirectory").Str
	n := 0
	doc.Get("history.#.message").ForEach(func(_, m gjson.Result) bool {
		at := s.modified.Add(time.Duration(n) * time.Millisecond)
		n++
		switch m.Get("role").Str {
		case "user":
			t.say(fmt.Sprintf("%s#%d", t.Session, n), texts(m.Get("content")), at)
		case "assistant":
			t.answer("", texts(m.Get("content")), at, stringsOf(m.Get("toolCalls.#.id"))...)
		}
		return true
	})
	return nil
}

// openMessage is a message of opencode with its parts.
type openMessage struct {
	id    string
	data  gjson.Result
	parts []gjson.Result

	isBack bool // the person took it back
}

// isReverted reports whether a session's revert includes a message. Message IDs ascend. A revert
// of a part leaves the words of its message.
func isReverted(revert gjson.Result, id string) bool {
	from := revert.Get("messageID").Str
	return from != "" && (id > from || id == from && revert.Get("partID").Str == "")
}

// readOpenCode reads the database. Version 1.2 moved the files of earlier ones into it.
func readOpenCode(s *source, t *turns) error {
	// Readers of a WAL write to the -shm file, so the database may be read only where that is
	// possible.
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: filepath.ToSlash(s.path), RawQuery: "mode=ro&_pragma=query_only(1)"}).String())
	if err != nil {
		return err
	}
	defer db.Close()
	revert := "''"
	if found := 0; db.QueryRow("SELECT 1 FROM pragma_table_info('session') WHERE name = 'revert'").Scan(&found) == nil {
		revert = "coalesce(s.revert, '')"
	}
	rows, err := db.Query(`SELECT s.id, s.directory, `+revert+`, m.id, m.data, coalesce(p.data, '') FROM session s JOIN message m ON m.session_id = s.id
		LEFT JOIN part p ON p.message_id = m.id WHERE coalesce(s.parent_id, '') = '' AND coalesce(length(p.data), 0) < ?
		ORDER BY s.time_created, s.id, m.time_created, m.id, p.id`, maxLine)
	if err != nil {
		return err
	}
	defer rows.Close()
	var last openMessage
	var session, dir string
	for rows.Next() {
		var id, data, part, of, in, revert string
		if err := rows.Scan(&of, &in, &revert, &id, &data, &part); err != nil {
			return err
		}
		if id != last.id {
			t.openMessage(&last)
			last = openMessage{id: id, data: gjson.Parse(data), isBack: isReverted(gjson.Parse(revert), id)}
		}
		if session, dir = of, in; session != t.Session {
			t.Session, t.Dir, t.last = session, dir, nil
		}
		last.parts = append(last.parts, gjson.Parse(part))
	}
	t.openMessage(&last)
	return rows.Err()
}

// openMessage adds a message of opencode. Synthetic texts and summaries are the client's.
func (t *turns) openMessage(m *openMessage) {
	var words, calls []string
	compaction := false
	for _, p := range m.parts {
		switch kind := p.Get("type").Str; {
		case kind == "text" && !p.Get("synthetic").Bool():
			words = append(words, p.Get("text").Str)
		case kind == "tool":
			calls = append(calls, p.Get("callID").Str)
		case kind == "compaction":
			compaction = true
		}
	}
	at := timeOf(m.data.Get("time.created"))
	switch role := m.data.Get("role").Str; {
	case m.id == "":
	case role == "user" && (compaction || len(words) == 0):
		t.last = nil
	case role == "user":
		if t.say(m.id, dialect.Unquoted(strings.Join(words, "\n")), at); t.last != nil {
			t.last.isBack = m.isBack
		}
	case role == "assistant" && !m.data.Get("summary").Bool() && m.data.Get("agent").Str != "compaction":
		t.answer("", strings.Join(words, "\n"), at, calls...)
	}
}

// readAider reads Markdown: lines after #### are the person's, lines after > the client's.
// Times are local, one for each start of the client.
func readAider(s *source, t *turns) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	t.Dir = filepath.Dir(s.path)
	var at time.Time
	var words, answer []string
	inWords, inCommand := false, false
	flush := func() {
		if len(words) > 0 {
			t.say("", strings.Join(words, "\n"), at)
			t.answer("", strings.TrimSpace(strings.Join(answer, "\n")), at)
			at = at.Add(time.Millisecond) // equal words are not a copy
		}
		words, answer = nil, nil
	}
	in := bufio.NewReaderSize(transform.NewReader(f, unicode.BOMOverride(transform.Nop)), 64<<10)
	for {
		raw, isLong, err := readLine(in)
		line := strings.TrimSuffix(strings.TrimRight(string(raw), "\r\n"), "  ")
		said, isSaid := strings.CutPrefix(line, "#### ")
		switch {
		case isLong:
			s.found.Skipped++
		case strings.HasPrefix(line, "# aider chat started at "):
			flush()
			at, _ = time.ParseInLocation(time.DateTime, strings.TrimPrefix(line, "# aider chat started at "), time.Local)
			t.Session, inCommand = at.UTC().Format(time.RFC3339)+" "+t.Dir, true
		case isSaid || line == "####":
			if !inWords {
				flush()
			}
			words, inWords, inCommand = append(words, said), true, false
		case strings.HasPrefix(line, "> ") || inCommand:
			inWords = false // the command line may have several lines
		default:
			answer, inWords = append(answer, line), false
		}
		if err != nil {
			flush()
			if errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			return nil
		}
	}
}
