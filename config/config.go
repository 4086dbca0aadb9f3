package config

import (
	"slices"
	"time"
)

// Config holds every setting. The tags describe it completely: key is the name in files
// and determines the environment variable, doc is the text of the reference, and reload
// marks settings that take effect without a restart.
type Config struct {
	Listen string   `key:"listen" default:"127.0.0.1:8787" kind:"address" doc:"where clients connect"`
	Allow  []string `key:"listen.allow" doc:"networks and addresses whose clients are served, such as 172.16.0.0/12, beside those of this machine; empty: everybody's. With it, identity.mode single may listen beyond the loopback interface; in a file written as listen.allow: […], in one line"`
	Client struct {
		Keys []string `key:"client.keys" reload:"yes" secret:"yes" doc:"credentials, or sha256:<hex> of them, of which each request must show one, as its API key; others are answered 401. With it, identity.mode single may listen beyond the loopback interface"`
	}
	Admin struct {
		Listen string `key:"admin.listen" default:"127.0.0.1:8788" kind:"address|off" doc:"the inspector, health, metrics and the API of the admin side; off disables"`
		Token  string `key:"admin.token" reload:"yes" secret:"yes" doc:"token of the admin side, for the inspector's login and as a bearer token; required to listen anywhere but loopback (health and metrics stay open)"`

		TrustedProxies []string `key:"admin.trusted_proxies" doc:"addresses and networks of reverse proxies in front of the admin side, such as 127.0.0.1 or 10.0.0.0/8, whose X-Forwarded-For and X-Forwarded-Proto are believed: wrong tokens count for the address of who sent them, and with https in front cookies are Secure; empty: none"`
	}
	Upstream struct {
		OpenAI          string        `key:"upstream.openai" reload:"yes" default:"https://api.openai.com" kind:"url" doc:"base for every path but those of Anthropic and Google, without /v1; the request path is appended as it came"`
		Anthropic       string        `key:"upstream.anthropic" reload:"yes" default:"https://api.anthropic.com" kind:"url" doc:"base for /v1/messages and for whatever carries an anthropic-version header"`
		Gemini          string        `key:"upstream.gemini" reload:"yes" default:"https://generativelanguage.googleapis.com" kind:"url" doc:"base for /v1beta/… and /v1/models/…:… of Google's API, and for whatever carries an x-goog-api-key header"`
		ConnectTimeout  time.Duration `key:"upstream.connect_timeout" reload:"yes" default:"10s" min:"1ms" doc:"most time to connect, TLS included"`
		ResponseTimeout time.Duration `key:"upstream.response_timeout" reload:"yes" default:"10m" min:"1ms" doc:"most time until the head of an answer arrives"`
		IdleTimeout     time.Duration `key:"upstream.idle_timeout" reload:"yes" default:"5m" min:"1s" doc:"longest silence within an answer's body, and of a client that stops reading it"`
	}
	Named     map[string]string `key:"upstreams" reload:"yes" kind:"name=url" doc:"more upstreams, by name: {ollama: http://127.0.0.1:11434} is served under /u/ollama/…, with the rest of the path as it came; in the environment ollama=http://127.0.0.1:11434, with commas between several"`
	WebSocket string            `key:"websocket" reload:"yes" default:"refuse" kind:"one of refuse, intercept, tunnel" doc:"the Responses API over WebSocket: refuse makes clients go on with POST, which has memory; intercept has memory in it too; tunnel passes it on without. Other WebSockets are tunnelled"`
	DataDir   string            `key:"data_dir" doc:"embedded state; default $XDG_DATA_HOME/graphiti-proxy, else ~/.local/share/graphiti-proxy"`
	Memory    struct {
		Backend           string        `key:"memory.backend" default:"embedded" kind:"one of embedded, graphiti, graphiti-mcp, off" doc:"where memories are kept"`
		Endpoint          string        `key:"memory.endpoint" kind:"url" doc:"Graphiti's address; alone, it selects graphiti; GRAPHITI_URL sets it"`
		APIKey            string        `key:"memory.api_key" secret:"yes" doc:"sent to Graphiti as Authorization: Bearer"`
		DropBoundThinking bool          `key:"memory.drop_bound_thinking" reload:"yes" default:"false" doc:"in a conversation of Anthropic's that has lost a block to memory forget, ask the API to drop the thoughts that were bound to it, in place of refusing the request; this adds thinking.block_binding and a beta to it"`
		Consent           bool          `key:"memory.consent" default:"false" doc:"must be true before a conversation is sent to memory.endpoint; in a file it counts for the endpoint that it stands beside"`
		Timeout           time.Duration `key:"memory.timeout" reload:"yes" default:"30s" min:"1ms" doc:"most time for one call to the memory, other than recall"`
		LocalFor          time.Duration `key:"memory.local_for" reload:"yes" default:"10m" min:"0s" doc:"what a person says is found here at once, while Graphiti has not worked it off or does not answer, and this long after it was delivered"`

		SkipPaths  []string `key:"memory.skip_paths" reload:"yes" doc:"requests without memory, by path; * stands for any text"`
		SkipModels []string `key:"memory.skip_models" reload:"yes" doc:"requests without memory, by model; * stands for any text"`
	}
	Workspace struct {
		Trusted     []string `key:"workspace.trusted" reload:"yes" doc:"the only workspaces with memory, by key (github_repo:github.com/acme/*) or directory (/home/me/src/*); empty: all"`
		Ignored     []string `key:"workspace.ignored" reload:"yes" doc:"workspaces without memory; a file .graphiti-proxy-ignore in one does the same"`
		RemotePaths bool     `key:"workspace.remote_paths" reload:"yes" default:"false" doc:"true: a directory that a client names and that is not on this machine is a project by its path; only where each path is one project. false: without X-Graphiti-Workspace or a remote that the client states, such a request has no memory"`
		Optional    bool     `key:"workspace.optional" reload:"yes" default:"false" doc:"true: a client whose tools run commands or write files, and that names no directory, has the person's own memory. false: without X-Graphiti-Workspace it has none"`
		Clones      []string `key:"workspace.clones" reload:"yes" doc:"directories (/home/me/src/*) whose git remote is believed as it stands; another directory belongs to the project that its remote names only if it was seen with that first, or graphiti-proxy workspace join has added it"`
	}
	Recall struct {
		Enabled            bool          `key:"recall.enabled" reload:"yes" default:"true" doc:"insert memories into requests"`
		Timeout            time.Duration `key:"recall.timeout" reload:"yes" default:"400ms" min:"1ms" max:"1m" doc:"the most that recall may delay a request; 800ms where it is not set and the memory is a service"`
		BackgroundTimeout  time.Duration `key:"recall.background_timeout" reload:"yes" default:"10s" min:"1ms" doc:"most time for a search that continues in the background"`
		MaxFacts           int           `key:"recall.max_facts" reload:"yes" default:"12" min:"1" max:"100" doc:"most facts in a block; what one person said on one day counts as one"`
		MaxChars           int           `key:"recall.max_chars" reload:"yes" default:"2500" min:"200" max:"100000" doc:"most characters of a conversation's first block; later ones have two fifths of it, or 1000 where that is more and fits"`
		Scopes             []string      `key:"recall.scopes" reload:"yes" default:"auto" kind:"auto, or some of session, workspace, user, agent" doc:"which scopes are searched"`
		AlsoGroups         []string      `key:"recall.also_groups" reload:"yes" doc:"groups of a Graphiti that other clients write to, which are searched too, and never written to or deleted: main, or a name with {directory}, {login} or {user} in it, such as 'opencode-{directory}__main'; see docs/graphiti.md"`
		Query              string        `key:"recall.query" default:"search" kind:"one of search, get-memory" doc:"how Graphiti's REST service is asked: by its search, or with messages by its get-memory"`
		CacheTTL           time.Duration `key:"recall.cache_ttl" default:"1m" min:"1ms" doc:"how long a search result is fresh; for ten times as long it is still used, and refreshed in the background"`
		StickyTTL          time.Duration `key:"recall.sticky_ttl" default:"30d" min:"1h" doc:"how long inserted blocks are repeated"`
		MinScore           float64       `key:"recall.min_score" reload:"yes" default:"0.25" min:"0" max:"1" doc:"how strongly the best fact found must answer a message for a block to be inserted: a higher one is silent more often, 0 never; see docs/recall.md"`
		InstructionGuard   string        `key:"recall.instruction_guard" reload:"yes" default:"quote" kind:"one of quote, drop, off" doc:"facts that read like instructions to the model: quote shows them as somebody's words, drop leaves them out"`
		DriftThreshold     float64       `key:"recall.drift_threshold" reload:"yes" default:"0.5" min:"0" max:"1" doc:"where the best fact found, and this part of all, stands in earlier blocks of the conversation, nothing new is inserted; 0: always what is new"`
		PrefetchSimilarity float64       `key:"recall.prefetch_similarity" reload:"yes" default:"0.25" min:"0" max:"1" doc:"how like a message must be to what was looked up after the turn before, as Jaccard's measure of their terms, for what was found then to answer without a search; 0: always, 1: hardly ever"`
		CardChars          int           `key:"recall.card_chars" reload:"yes" default:"400" min:"0" max:"4000" doc:"most characters of the card with which a conversation begins: decisions for the project, and the person's preferences and rules; 0: no card"`
		ResumeWithin       time.Duration `key:"recall.resume_within" reload:"yes" default:"7d" min:"0s" doc:"the first message of a new conversation in a project gets a line that says where the last conversation there ended, if that was less than this ago; 0: never"`
		Wait               bool          `key:"recall.wait" reload:"yes" default:"true" doc:"false: a request never waits for the memory; what was found before answers, and what is found now is for the next turn"`
		ContextShare       float64       `key:"recall.context_share" reload:"yes" default:"0.05" min:"0" max:"1" doc:"of the model's context window that a block may take at most, and never more than recall.max_chars; 0: that alone bounds it"`
		ContextWindow      int           `key:"recall.context_window" reload:"yes" default:"32000" min:"1000" max:"100000000" doc:"tokens in the context window of models that the proxy does not know"`
		Compaction         bool          `key:"recall.compaction" reload:"yes" default:"true" doc:"when a client has its history summarised, tell the summariser what is known"`
		StaleAfter         time.Duration `key:"recall.stale_after" reload:"yes" default:"30d" min:"1h" doc:"facts older than this are marked with their age"`
	}
	Ingest struct {
		Enabled         bool          `key:"ingest.enabled" reload:"yes" default:"true" doc:"keep finished turns"`
		Scopes          []string      `key:"ingest.scopes" reload:"yes" default:"auto" kind:"auto, or some of session, workspace, user, agent" doc:"in which scopes turns are kept"`
		MaxTurns        int           `key:"ingest.max_turns" reload:"yes" default:"100000" min:"1" max:"10000000" doc:"most turns in the queue; when it is full the oldest are dropped, dead letters first"`
		MaxBytes        int           `key:"ingest.max_bytes" reload:"yes" default:"256MiB" kind:"size" min:"1KiB" doc:"most bytes in the queue; likewise"`
		MaxAge          time.Duration `key:"ingest.max_age" reload:"yes" default:"30d" min:"1m" doc:"how long a turn may wait before it is dropped"`
		MaxBatch        int           `key:"ingest.max_batch" reload:"yes" default:"10" min:"1" max:"100" doc:"most turns in one call to a memory elsewhere"`
		Episodes        string        `key:"ingest.episodes" reload:"yes" default:"turn" kind:"one of turn, message" doc:"what Graphiti gets of a turn: one message with both sides, for which its model is asked about half as often, or one for each"`
		MaxMessageChars int           `key:"ingest.max_message_chars" reload:"yes" default:"8000" min:"100" max:"1000000" doc:"longer messages keep their beginning and their end"`
		Verify          bool          `key:"ingest.verify" default:"true" doc:"a turn counts as delivered when Graphiti shows it, and is sent again when Graphiti lost it; false: when Graphiti accepted it"`
		StallAfter      time.Duration `key:"ingest.stall_after" reload:"yes" default:"5m" min:"1s" doc:"when Graphiti shows nothing new for this long, its worker is taken for dead, and sending stops until it works again"`
		BackfillTurns   int           `key:"ingest.backfill_turns" reload:"yes" default:"10" min:"0" max:"1000" doc:"most turns to keep of a history that the proxy has never seen; the newest"`
		IncludeSystem   bool          `key:"ingest.include_system" reload:"yes" default:"false" doc:"write once into each group whose it is: the owner from identity.owner or the registry of people, and whether it is about a workspace, themselves, an agent or a session"`
		IdleFlush       time.Duration `key:"ingest.idle_flush" default:"2m" min:"1s" max:"24h" doc:"silence after which a tool loop that has not ended is kept as far as it came"`
		GitMetadata     bool          `key:"ingest.git_metadata" reload:"yes" default:"false" doc:"note branch, commit and whether there were changes, where the client tells"`
		ToolSummaries   bool          `key:"ingest.tool_summaries" reload:"yes" default:"false" doc:"note in one line which tools a turn used; never their input or output"`
	}
	Embedding struct {
		URL    string `key:"embedding.url" kind:"url" doc:"an endpoint with OpenAI's embeddings API, such as http://127.0.0.1:11434/v1: the embedded memory then also finds what means the same; needs memory.consent"`
		Model  string `key:"embedding.model" default:"text-embedding-3-small" doc:"the model's name there"`
		APIKey string `key:"embedding.api_key" secret:"yes" doc:"sent to it as a bearer token"`
	}
	Distil struct {
		URL         string        `key:"distil.url" kind:"url" doc:"a server with OpenAI's Chat Completions API, such as http://127.0.0.1:11434/v1: quiet conversations of the embedded memory are sent to a model there, which distils facts from them; needs distil.model and memory.consent"`
		Model       string        `key:"distil.model" doc:"the model's name there"`
		APIKey      string        `key:"distil.api_key" secret:"yes" doc:"sent to it as a bearer token"`
		After       time.Duration `key:"distil.after" reload:"yes" default:"10m" min:"1s" doc:"quiet time before a conversation is distilled; after 4,000 new characters it does not wait"`
		DailyTokens int           `key:"distil.daily_tokens" reload:"yes" default:"200000" min:"0" doc:"most tokens to spend on facts in a day (UTC)"`
		Pause       bool          `key:"distil.pause" reload:"yes" default:"false" doc:"send nothing to the model; conversations wait"`
	}
	Identity struct {
		Mode         string   `key:"identity.mode" default:"single" kind:"one of single, multi" doc:"single: one person's machine; multi: every credential is its own tenant"`
		Owner        string   `key:"identity.owner" doc:"the person in single mode, such as github_login:octocat; default: random, kept in data_dir"`
		UsersFile    string   `key:"identity.users_file" reload:"yes" doc:"the registry of people, a YAML file; read again on SIGHUP"`
		TrustedKeys  []string `key:"identity.trusted_keys" reload:"yes" secret:"yes" doc:"credentials, or sha256:<hex> of them, whose asserted user is believed"`
		BodyUsers    bool     `key:"identity.body_users" reload:"yes" default:"false" doc:"a trusted key's person may be named in the body (safety_identifier, user, metadata.user_id) and in ?userId= too, and not in headers alone; only where callers of that gateway cannot choose them"`
		OpenWebUI    string   `key:"identity.openwebui_jwt_secret" reload:"yes" secret:"yes" doc:"Open WebUI's FORWARD_USER_INFO_HEADER_JWT_SECRET: who speaks is read from its signed header X-OpenWebUI-User-Jwt; empty: a request with that header has no memory"`
		GroupIDs     string   `key:"identity.group_ids" default:"canonical" kind:"one of canonical, raw" doc:"canonical: hashed, shared with other Graphiti clients; raw: readable"`
		WorkspaceIDs string   `key:"identity.workspace_ids" default:"canonical" kind:"one of canonical, raw" doc:"raw: a project that is called as a group can be, by X-Graphiti-Workspace, is kept in the group of that very name, which other clients may share; the others, and canonical: as identity.group_ids says"`
	}
	State struct {
		Backend  string `key:"state.backend" default:"sqlite" kind:"one of sqlite, redis" doc:"where inserted blocks, sessions and waiting turns are kept: in data_dir, or in a Redis that several replicas share"`
		RedisURL string `key:"state.redis_url" secret:"yes" doc:"for state.backend redis: redis://:password@host:6379/0, or rediss:// for TLS"`
	}
	TLS struct {
		Cert      string   `key:"tls.cert" doc:"file with the certificate, and those between it and its root, in PEM; read again when it changes"`
		Key       string   `key:"tls.key" doc:"file with its key"`
		Listeners []string `key:"tls.listeners" default:"client" kind:"auto, or some of client, admin" doc:"which listeners speak TLS where a certificate is set; auto: both"`
	}
	Promote struct {
		Remember   bool `key:"promote.remember" reload:"yes" default:"true" doc:"what a person asks to have remembered or forgotten, such as 'Remember that we use Postgres', is done where they say it, and elsewhere once they confirm it"`
		Directives bool `key:"promote.directives" reload:"yes" default:"false" doc:"lines such as 'preference: tabs, not spaces' or 'decision (workspace): Postgres' in a person's message are kept as what they are"`
	}
	Limits struct {
		InspectBytes  int           `key:"limits.inspect_bytes" reload:"yes" default:"16MiB" kind:"size" min:"1KiB" max:"1GiB" doc:"larger request bodies are streamed through, without memory"`
		InspectTotal  int           `key:"limits.inspect_total" reload:"yes" default:"0" kind:"size" min:"0" doc:"what is inspected of all requests and answers at the same time: bodies, decoded bodies, parsed messages, frames; requests above it are streamed through, without memory. 0: a quarter of the memory limit (GOMEMLIMIT or the cgroup's), else of the machine's memory, 1GiB at most"`
		Messages      int           `key:"limits.messages" reload:"yes" default:"20000" min:"1" max:"1000000" doc:"messages of a request; one with more is sent on without memory"`
		HeaderBytes   int           `key:"limits.header_bytes" default:"64KiB" kind:"size" min:"4KiB" max:"1MiB" doc:"head of a request"`
		HeaderTimeout time.Duration `key:"limits.header_timeout" default:"10s" min:"100ms" doc:"most time for a request's head to arrive"`
		IdleTimeout   time.Duration `key:"limits.idle_timeout" default:"2m" min:"1s" doc:"most time between two requests of a connection"`
		BodyTimeout   time.Duration `key:"limits.body_timeout" default:"30s" min:"100ms" doc:"longest silence of a client within a request's body; then it is answered 408"`
		Connections   int           `key:"limits.connections" default:"16384" min:"1" max:"1000000" doc:"clients at the same time, tunnels included; more are answered 503. Each takes two file descriptors: where there are fewer, silent connections are closed for new ones"`
		PerAddress    int           `key:"limits.connections_per_address" default:"0" min:"0" max:"1000000" doc:"of them, those from one address (IPv6: one /64); more are answered 503. 0: half of limits.connections in identity.mode multi, all in single. Behind a gateway or load balancer every client has its address: set it to limits.connections there"`
	}
	Log struct {
		Level    string `key:"log.level" reload:"yes" default:"info" kind:"one of debug, info, warn, error" doc:"what is logged; never conversation text, never a credential"`
		Requests bool   `key:"log.requests" reload:"yes" default:"true" doc:"a line for each request at info"`
		Format   string `key:"log.format" default:"auto" kind:"one of auto, text, json" doc:"auto: text on a terminal, else json"`
	}
	OTel struct {
		Endpoint string  `key:"otel.endpoint" kind:"url" doc:"OpenTelemetry collector that takes OTLP over HTTP, e.g. http://127.0.0.1:4318; empty: what OTEL_EXPORTER_OTLP_ENDPOINT says, else nothing is exported"`
		Traces   bool    `key:"otel.traces" default:"true" doc:"whether spans are exported, where there is a collector"`
		Metrics  bool    `key:"otel.metrics" default:"true" doc:"whether metrics are exported, where there is a collector; Prometheus reads /metrics on the admin side either way"`
		Sample   float64 `key:"otel.sample" default:"1" min:"0" max:"1" doc:"the part of requests that are traced, where the client does not say; OTEL_TRACES_SAMPLER goes before"`
	}
	ShutdownGrace time.Duration `key:"shutdown_grace" reload:"yes" default:"30s" min:"0s" doc:"how long running streams may go on after SIGTERM"`

	file       string
	consentFor string
	notes      []string
	origins    map[string]string
}

// ConsentFor returns the other endpoint that consent was given for, or "".
func (c *Config) ConsentFor() string { return c.consentFor }

// RemoteMemory reports whether a service stores the memories.
func (c *Config) RemoteMemory() bool {
	return c.Memory.Backend == "graphiti" || c.Memory.Backend == "graphiti-mcp"
}

// PerAddress returns the maximum number of clients from one address; 0 means no limit.
func (c *Config) PerAddress() int {
	if c.Limits.PerAddress == 0 && c.Identity.Mode == "multi" {
		return max(c.Limits.Connections/2, 1)
	}
	return c.Limits.PerAddress
}

// TLSFor reports whether a listener ("client" or "admin") uses TLS.
func (c *Config) TLSFor(listener string) bool {
	return c.TLS.Cert != "" && (slices.Contains(c.TLS.Listeners, listener) || slices.Contains(c.TLS.Listeners, "auto"))
}

// Notes returns notes about adjusted values.
func (c *Config) Notes() []string { return c.notes }

// File returns the name of the configuration file that was read, or "".
func (c *Config) File() string { return c.file }

// Origin returns the place where a key's value was set.
func (c *Config) Origin(key string) string { return c.origins[key] }

// FactsAsked returns the number of facts to request from a search: more than a block
// shows, because some are invalid or already visible. It is smaller with Graphiti, which
// reads the embedding of each candidate.
func (c *Config) FactsAsked() int {
	if c.RemoteMemory() {
		return c.Recall.MaxFacts * 3 / 2
	}
	return 2 * c.Recall.MaxFacts
}
