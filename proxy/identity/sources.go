package identity

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Source is one place in a request that may name its session, user, project, agent or
// system actor. The first source of a table with a valid value counts.
type Source struct {
	Name     string // name in the documentation
	Note     string
	Platform string // platform of the IDs; "" if the value is a key
	same     bool   // names the same person as the previous source

	// elsewhere restricts the source to working directories outside this machine. On this
	// machine we read .git/config ourselves; the client repeats it without checking.
	elsewhere bool

	header  string                // a header, in fasthttp's spelling, and
	id      int                   // its number in headerIDs; or
	field   dialect.Field         // a member of the body, and
	path    string                // its member, in gjson's syntax, or "" for itself; or
	pattern bool                  // any header that matches sessionHeader; or
	prompt  string                // the text after this in the client's prompt; or
	query   string                // a query parameter; or
	token   string                // a member of Open WebUI's signed token in header; or
	place   func(*Claims) string  // derived from the client's working directory; or
	of      []string              // names of the clients that use it, from package dialect; nil means all
	when    func(*Claims) bool    // condition for using the source; nil means always
	take    func(v string) string // extracts the significant part of the value; nil takes all
}

// openWebUIChat is the header with Open WebUI's conversation ID.
const openWebUIChat = "X-Openwebui-Chat-Id"

// openWebUIUser is the header with Open WebUI's signed token of the person.
const openWebUIUser = "X-Openwebui-User-Jwt"

// parentSession is the header with the session of a subagent's parent.
const parentSession = "X-Parent-Session-Id"

var codex = []string{dialect.Codex}

// sessionSources name the conversation of a request. IDs of requests, windows and people
// do not identify conversations.
var sessionSources = []Source{
	{Name: "header X-Graphiti-Session", header: "X-Graphiti-Session"},
	{Name: "header x-litellm-session-id", header: "X-Litellm-Session-Id"},
	{Name: "header X-OpenWebUI-Chat-Id", Note: "local:… is a temporary chat: none of it is stored", header: openWebUIChat},
	{Name: "header session-id", Note: "Codex from 0.129", header: "Session-Id", of: codex},
	{Name: "header session_id", Note: "Codex 0.98 to 0.128", header: "Session_id", of: codex},
	{Name: "header conversation_id", Note: "Codex 0.58", header: "Conversation_id", of: codex},
	{Name: "body client_metadata.session_id", Note: "Codex", field: dialect.FieldClientMetadata, path: "session_id"},
	{Name: "header X-Claude-Code-Session-Id", header: "X-Claude-Code-Session-Id"},
	{Name: "body metadata.user_id, Claude Code's", Note: "the session in it", field: dialect.FieldMetadata, path: "user_id", take: claudeSession},
	{Name: "header x-parent-session-id", Note: "opencode and Kilo: a subagent belongs to its parent's conversation", header: parentSession, take: noTitle},
	{Name: "header x-opencode-session", header: "X-Opencode-Session", take: noTitle},
	{Name: "header x-session-id", Note: "opencode, Kilo, Crush, OpenRouter's", header: "X-Session-Id", take: noTitle},
	{Name: "header x-session-affinity", Note: "opencode, Kilo, Crush, pi; others have one for all conversations of a process", header: "X-Session-Affinity", of: []string{"opencode", "Kilo", "Crush", "pi"}, take: noTitle},
	{Name: "header x-affinity", Note: "Mistral Vibe", header: "X-Affinity", of: []string{"Mistral Vibe"}},
	{Name: "header agent-session-id", Note: "Goose", header: "Agent-Session-Id"},
	{Name: "header goose-session-id", Note: "Goose, older", header: "Goose-Session-Id"},
	{Name: "prompt .copilot/session-state/<id>", Note: "Copilot CLI", prompt: ".copilot/session-state/", when: (*Claims).copilot, take: conversationLike},
	{Name: "header x-…-session-id", Note: "also -conversation-, -thread- and -chat-id, from 8 characters", pattern: true},
	{Name: "body session_id", field: dialect.FieldSessionID},
	{Name: "body litellm_session_id", field: dialect.FieldLiteLLMSessionID},
	{Name: "body metadata.session_id", field: dialect.FieldMetadata, path: "session_id"},
	{Name: "body metadata.conversation_id", field: dialect.FieldMetadata, path: "conversation_id"},
	{Name: "body metadata.thread_id", field: dialect.FieldMetadata, path: "thread_id"},
	{Name: "body metadata.chat_id", field: dialect.FieldMetadata, path: "chat_id"},
	{Name: "body conversation", Note: "Responses API", field: dialect.FieldConversation},
	{Name: "body conversation.id", Note: "Responses API", field: dialect.FieldConversation, path: "id"},
	{Name: "body prompt_cache_key", Note: "a UUID or ses_… only", field: dialect.FieldPromptCacheKey, take: conversationLike},
}

// userSources name the person.
var userSources = []Source{
	{Name: "header X-Graphiti-User", Note: "a name, or platform:id", header: "X-Graphiti-User"},
	{Name: "header X-OpenWebUI-User-Jwt", Platform: "openwebui", header: openWebUIUser, token: "sub", Note: "read with `identity.openwebui_jwt_secret`"},
	{Name: "header X-OpenWebUI-User-Jwt, its e-mail", Platform: "openwebui", same: true, header: openWebUIUser, token: "email"},
	{Name: "header X-OpenWebUI-User-Id", Platform: "openwebui", header: "X-Openwebui-User-Id"},
	{Name: "header X-OpenWebUI-User-Email", Platform: "openwebui", same: true, header: "X-Openwebui-User-Email"},
	{Name: "header x-litellm-customer-id", Platform: "litellm", header: "X-Litellm-Customer-Id"},
	{Name: "header x-litellm-end-user-id", Platform: "litellm", header: "X-Litellm-End-User-Id"},
	{Name: "header x-litellm-user_api_key_end_user_id", Platform: "litellm", header: "X-Litellm-User_api_key_end_user_id"},
	{Name: "header x-litellm-user_api_key_user_id", Platform: "litellm", header: "X-Litellm-User_api_key_user_id", take: notEverybody, Note: "not default_user_id, shared by all users of the master key"},
	{Name: "header x-litellm-user_api_key_user_email", Platform: "litellm", same: true, header: "X-Litellm-User_api_key_user_email"},
	{Name: "header x-claude-gateway-user-id", Platform: "claude", header: "X-Claude-Gateway-User-Id"},
	{Name: "header x-claude-gateway-user-email", Platform: "claude", same: true, header: "X-Claude-Gateway-User-Email"},
	{Name: "body safety_identifier", field: dialect.FieldSafetyIdentifier},
	{Name: "body user", Note: "except Goose's, which is a conversation", field: dialect.FieldUser, when: (*Claims).notGoose},
	{Name: "body litellm_metadata.user", Platform: "litellm", field: dialect.FieldLiteLLMMetadata, path: "user"},
	{Name: "body metadata.user_id", Note: "except Claude Code's values", field: dialect.FieldMetadata, path: "user_id", take: notClaude},
	{Name: "body metadata.user_id, Claude Code's", Platform: "claude", field: dialect.FieldMetadata, path: "user_id", take: claudeAccount},
	{Name: "query userId", query: "userId"},
}

// workspaceSources name the project of a request. The header is explicit, so it comes
// first. Next is the origin that we read on this machine, which clones and clients share,
// then the repository that a client states. The directory is last, because it belongs to a
// single clone.
var workspaceSources = []Source{
	{Name: "header X-Graphiti-Workspace", header: "X-Graphiti-Workspace"},
	{Name: "repository of the working directory", Note: "single mode: the address of origin, or else of the first remote", place: (*Claims).placeRemote},
	{Name: "header x-codex-turn-metadata", Note: "Codex from 0.98, or the same in body client_metadata: the origin of its repository", of: codex, place: (*Claims).codexRemote, elsewhere: true},
	{Name: "prompt Git repository: owner/name", Note: "Copilot, on github.com", place: (*Claims).placeRepo, elsewhere: true},
	{Name: "working directory", Note: "single mode: the repository's main checkout, or else the directory itself", place: (*Claims).placeRoot},
	{Name: "working directory elsewhere", Note: "with workspace.remote_paths, outside this machine: its path", place: (*Claims).placePath, elsewhere: true},
}

var agentSources = []Source{
	{Name: "header X-Graphiti-Agent", header: "X-Graphiti-Agent"},
	{Name: "header x-litellm-agent-id", header: "X-Litellm-Agent-Id"},
}

var actorSources = []Source{
	{Name: "header X-Graphiti-System-Actor", header: "X-Graphiti-System-Actor"},
}

// tables lists the sources of each kind with the function that makes a key of a value.
var tables = []struct {
	What    string
	Sources []Source
	key     func(string) (string, bool)
}{
	{"session", sessionSources, graphiti.SessionKey},
	{"user", userSources, graphiti.UserKey},
	{"workspace", workspaceSources, graphiti.WorkspaceKey},
	{"agent", agentSources, graphiti.BareName},
	{"system actor", actorSources, graphiti.BareName},
}

// Kinds of claims, in the order of the tables.
const (
	Session = iota
	User
	Workspace
	Agent
	SystemActor
	kinds
)

// headerIDs numbers the headers of all tables.
var headerIDs = func() map[string]int {
	ids := make(map[string]int)
	for _, t := range tables {
		for i := range t.Sources {
			s := &t.Sources[i]
			if s.header == "" {
				continue
			}
			if _, ok := ids[s.header]; !ok {
				ids[s.header] = len(ids)
			}
			s.id = ids[s.header]
		}
	}
	return ids
}()

// maxHeaders is the most distinct headers in all tables; a test checks it.
const maxHeaders = 40

// notEverybody drops the user that LiteLLM assigns to its master key.
func notEverybody(v string) string {
	if v == "default_user_id" {
		return ""
	}
	return v
}

// noTitle removes Kilo's prefix of title sessions.
func noTitle(v string) string { return strings.TrimPrefix(v, "title-") }

var (
	uuid          = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	claudeOld     = regexp.MustCompile(`^user_[0-9a-f]{64}_account_([0-9a-f-]*)_session_([0-9a-f-]{36})$`)
	claudeAccount = func(v string) string { account, _ := claude(v); return account }
	claudeSession = func(v string) string { _, session := claude(v); return session }
)

// claude parses Claude Code's metadata.user_id: a JSON object since 2.1, before that an
// underscore-separated string. It ignores the device, which is not a person.
func claude(v string) (account, session string) {
	if m := claudeOld.FindStringSubmatch(v); m != nil {
		return m[1], m[2]
	}
	if strings.HasPrefix(v, "{") {
		return gjson.Get(v, "account_uuid").String(), gjson.Get(v, "session_id").String()
	}
	return "", ""
}

// notClaude drops Claude Code's values.
func notClaude(v string) string {
	if strings.HasPrefix(v, "{") || claudeOld.MatchString(v) {
		return ""
	}
	return v
}

// conversationLike drops cache keys that conversations may share.
func conversationLike(v string) string {
	if uuid.MatchString(v) || strings.HasPrefix(v, "ses_") {
		return v
	}
	return ""
}
