//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var (
	messageID = regexp.MustCompile(`"id":\s*"([0-9a-f]{12})"`)
	groupID   = regexp.MustCompile(`graphiti_[a-z]+_[0-9a-f]{32}`)
)

const adminToken = "an-admin-token-of-nobody"

// fingerprint returns the hash that identifies a credential in the registry.
func fingerprint(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// serveTeam starts a proxy for ann and josh, each with a key of their own, and an
// administrator.
func serveTeam(t *testing.T, program string, names map[string]string, env ...string) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.yaml")
	registry := "users:\n"
	for _, who := range []string{"ann", "josh"} {
		name, err := json.Marshal(names[who])
		must(t, err)
		registry += fmt.Sprintf("  - {id: %s, displayName: %s, keys: [%q]}\n", who, name, "sha256:"+fingerprint("sk-"+who))
	}
	registry += fmt.Sprintf("  - {id: root, admin: true, keys: [%q]}\n", "sha256:"+fingerprint("sk-root"))
	write(t, registry, file)
	return serveWith(t, program, append(env, "GRAPHITI_PROXY_IDENTITY_MODE=multi", "GRAPHITI_PROXY_IDENTITY_USERS_FILE="+file, "GRAPHITI_PROXY_ADMIN_TOKEN="+adminToken)...)
}

// api posts to an operation of the admin API with a credential, and returns the status and
// the answer.
func (w *world) api(t *testing.T, credential, path string, body any) (int, string) {
	t.Helper()
	b, err := json.Marshal(body)
	must(t, err)
	return w.call(t, http.MethodPost, credential, path, b)
}

// get reads a resource of the admin API.
func (w *world) get(t *testing.T, credential, path string) (int, string) {
	t.Helper()
	return w.call(t, http.MethodGet, credential, path, nil)
}

func (w *world) call(t *testing.T, method, credential, path string, b []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, w.admin+"/api/v1/"+path, bytes.NewReader(b))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+credential)
	status, got := http.StatusTooManyRequests, ""
	w.eventually(t, "a call to be taken", func() bool {
		req.Body = io.NopCloser(bytes.NewReader(b))
		resp, err := http.DefaultClient.Do(req)
		read := helptest.Body(t, resp, err)
		status, got = resp.StatusCode, string(read)
		return status != http.StatusTooManyRequests
	})
	return status, got
}

// secrets are the words that only the person who sent them may see.
var secrets = map[string]string{"ann": "periwinkle", "josh": "marmalade"}

// confide sends each person's secret to their own memory and to a project.
func (w *world) confide(t *testing.T) {
	t.Helper()
	for _, who := range []string{"ann", "josh"} {
		for _, text := range []string{"The secret word of the boathouse is %s.", "Remember that the anchor is painted %s.", "What is the secret word of the boathouse, %s?"} {
			for _, project := range []string{"", "boathouse"} {
				headers := map[string]string{"Authorization": "Bearer sk-" + who}
				if project != "" {
					headers["X-Graphiti-Workspace"] = project
				}
				w.attack(t, "/v1/chat/completions", asked("m", fmt.Sprintf(text, secrets[who])), headers)
			}
		}
	}
	for _, who := range []string{"ann", "josh"} {
		w.eventually(t, who+"'s words", func() bool {
			_, shown := w.api(t, "sk-"+who, "memory/show", map[string]any{})
			return strings.Contains(shown, "secret word of the boathouse is "+secrets[who])
		})
	}
}

// restartSettled restarts the proxy and waits until its queue is empty. A turn is stored
// some time after its answer; a proxy that has exited has stored all of them.
func (w *world) restartSettled(t *testing.T) {
	t.Helper()
	w.stop(t)
	w.start(t, w.env...)
	w.eventually(t, "all turns to be delivered", func() bool {
		status, got := w.get(t, adminToken, "queue")
		var q queue
		if err := json.Unmarshal([]byte(got), &q); status != http.StatusOK || err != nil {
			t.Fatalf("the queue: %d, %s (%v)", status, got, err)
		}
		return q.Pending == 0
	})
}

// TestSeparatePeople checks that neither the pages nor the API show a person's
// memory to another person.
func TestSeparatePeople(t *testing.T) {
	t.Parallel()
	w := serveTeam(t, binary, map[string]string{"ann": hostileHeader("ann"), "josh": hostileHeader("josh")})
	w.confide(t)
	w.restartSettled(t)
	people := map[string]any{}
	for who, other := range map[string]string{"ann": "josh", "josh": "ann"} {
		people[who] = map[string]any{"token": "sk-" + who, "secret": secrets[who], "other": secrets[other], "otherName": other, "credential": fingerprint("sk-" + who)}
	}
	inBrowser(t, "others.mjs", map[string]any{"base": w.admin, "people": people})
	t.Run("the operator reads names as text", func(t *testing.T) {
		inBrowser(t, "stored.mjs", map[string]any{"base": w.admin, "token": adminToken, "payloads": payloads[:2], "limit": 12, "from": []string{"/people", "/memory", "/"}, "marks": []string{"MARK-ann", "MARK-josh"}})
	})
}

// TestOperatorWithKeyboard confirms a person whose keys are new, delivers a dead letter again and deletes one,
// on a phone's screen.
func TestOperatorWithKeyboard(t *testing.T) {
	t.Parallel()
	g, err := graphititest.Start(graphititest.Options{})
	must(t, err)
	defer g.Close()
	w := serveTeam(t, binary, map[string]string{"ann": "Ann", "josh": "Josh"}, "GRAPHITI_PROXY_MEMORY_BACKEND=graphiti", "GRAPHITI_PROXY_MEMORY_ENDPOINT="+g.URL(), "GRAPHITI_PROXY_MEMORY_CONSENT=true")
	var saturdays, door atomic.Bool // refused
	g.Always(graphititest.Messages, func(rw http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		body, _ := io.ReadAll(r.Body)
		if r.Body = io.NopCloser(bytes.NewReader(body)); bytes.Contains(body, []byte("kiln")) {
			serve = func(rw http.ResponseWriter, _ *http.Request) {
				saturdays.Store(saturdays.Load() || bytes.Contains(body, []byte("Saturdays")))
				door.Store(door.Load() || bytes.Contains(body, []byte("door")))
				http.Error(rw, "a kiln", http.StatusUnprocessableEntity)
			}
		}
		serve(rw, r)
	})
	say := func(who, text string) {
		w.attack(t, "/v1/chat/completions", asked("m", text), map[string]string{"Authorization": "Bearer sk-" + who})
	}
	say("ann", "The kiln is fired on Saturdays.")
	say("ann", "The door of the kiln is red.")
	w.eventually(t, "both turns to be refused", func() bool { return saturdays.Load() && door.Load() })
	say("josh", "The greenhouse has a new lock.") // only a memory that takes other turns makes refused ones dead
	w.eventually(t, "two dead letters", func() bool {
		_, got := w.get(t, adminToken, "queue")
		return strings.Contains(got, `"dead": 2`)
	})
	for _, v := range w.env {
		if file, ok := strings.CutPrefix(v, "GRAPHITI_PROXY_IDENTITY_USERS_FILE="); ok {
			users, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, bytes.ReplaceAll(users, []byte(fingerprint("sk-josh")), []byte(fingerprint("sk-josh-2"))), 0o600)
			}
			must(t, err)
		}
	}
	w.stop(t)
	w.start(t, w.env...)
	inBrowser(t, "operator.mjs", map[string]any{"base": w.admin, "token": adminToken})
}

// TestForeignPages checks that a page of another site, opened in the same
// browser, can neither read nor change the memory.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) (*world, string){
		"without a token": func(t *testing.T) (*world, string) { return serve(t), "" },
		"with a token": func(t *testing.T) (*world, string) {
			return serve(t, "GRAPHITI_PROXY_ADMIN_TOKEN="+adminToken), adminToken
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, token := start(t)
			w.tell(t, "The secret word of the boathouse is periwinkle.")
			shown := ""
			w.eventually(t, "the message", func() bool {
				_, shown = w.api(t, token, "memory/show", map[string]any{})
				return strings.Contains(shown, "periwinkle")
			})
			inBrowser(t, "foreign.mjs", map[string]any{"base": w.admin, "token": token, "secret": "periwinkle", "message": messageID.FindStringSubmatch(shown)[1]})
		})
	}
}
