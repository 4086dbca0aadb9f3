package config

import (
	"slices"
	"strings"
	"time"
)

// Config holds every setting. The tags describe it completely: key is the name in files
// and determines the environment variable, doc is the text of the reference, and reload
// marks settings that take effect without a restart.
type Config struct {
	Listen string   `key:"listen" usual:"yes" default:"127.0.0.1:8787" kind:"address" doc:"address for clients"`
	Allow  []string `key:"listen.allow" doc:"networks and addresses of clients to serve, such as 172.16.0.0/12, besides this machine's own; empty serves all. If set, identity.mode single may listen beyond loopback. In a file: listen.allow: […] on one line"`
	Client struct {
		Keys []string `key:"client.keys" reload:"yes" secret:"yes" doc:"credentials, or their sha256:<hex>, of which each request must send one. If set, identity.mode single may listen beyond loopback"`
	}
	Admin struct {
		Listen string `key:"admin.listen" default:"127.0.0.1:8788" kind:"address|off" doc:"address of the admin side: inspector, health, metrics and API; off disables it"`
		Token  string `key:"admin.token" reload:"yes" secret:"yes" doc:"bearer token of the admin side, and of the inspector's login; required to listen beyond loopback (health and metrics stay open)"`

		TrustedProxies []string `key:"admin.trusted_proxies" doc:"addresses and networks of reverse proxies, such as 10.0.0.0/8, whose X-Forwarded-For and X-Forwarded-Proto count"`
	}
	Upstream struct {
		OpenAI          string        `key:"upstream.openai" usual:"yes" reload:"yes" default:"https://api.openai.com" kind:"url" doc:"base URL, without /v1, for every path except Anthropic's and Google's; the request path is appended unchanged"`
		Anthropic       string        `key:"upstream.anthropic" usual:"yes" reload:"yes" default:"https://api.anthropic.com" kind:"url" doc:"base URL for /v1/messages and for requests with an anthropic-version header"`
		Gemini          string        `key:"upstream.gemini" reload:"yes" default:"https://generativelanguage.googleapis.com" kind:"url" doc:"base URL for Google's /v1beta/… and /v1/models/…:…, and for requests with an x-goog-api-key header"`
		ConnectTimeout  time.Duration `key:"upstream.connect_timeout" reload:"yes" default:"10s" min:"1ms" doc:"maximum time to connect, including TLS"`
		ResponseTimeout time.Duration `key:"upstream.response_timeout" reload:"yes" default:"10m" min:"1ms" doc:"maximum time until the head of an answer arrives"`
		IdleTimeout     time.Duration `key:"upstream.idle_timeout" reload:"yes" default:"5m" min:"1s" doc:"maximum silence within an answer's body, and of a client that stops reading it"`
	}
	Named     map[string]string `key:"upstreams" usual:"yes" reload:"yes" kind:"name=url" doc:"more upstreams, by name: {ollama: http://127.0.0.1:11434} is served under /u/ollama/…"`
	WebSocket string            `key:"websocket" reload:"yes" default:"refuse" kind:"one of refuse, intercept, tunnel" doc:"the Responses API over WebSocket: refuse makes clients fall back to POST; intercept adds memory to the WebSocket; tunnel relays it without memory"`
	DataDir   string            `key:"data_dir" usual:"yes" doc:"directory of the embedded state; default $XDG_DATA_HOME/graphiti-proxy, else ~/.local/share/graphiti-proxy"`
	Memory    struct {
		Backend           string        `key:"memory.backend" default:"embedded" kind:"one of embedded, graphiti, graphiti-mcp, off" doc:"backend that stores memories"`
		IndexBytes        int           `key:"memory.index_bytes" default:"64MiB" kind:"size" min:"1MiB" max:"64GiB" doc:"maximum size of the search indexes in RAM; further groups are read when they are searched"`
		Endpoint          string        `key:"memory.endpoint" usual:"yes" kind:"url" doc:"Graphiti's address; setting only this selects graphiti; GRAPHITI_URL sets it"`
		APIKey            string        `key:"memory.api_key" reload:"yes" secret:"yes" doc:"sent to Graphiti as Authorization: Bearer"`
		Headers           []string      `key:"memory.headers" doc:"further headers for Graphiti, each with the file of its value: X-Access=/run/secrets/access; read for every request"`
		ClientCertificate string        `key:"memory.client_certificate" doc:"PEM file with the client certificate for Graphiti and its key; read for each connection"`
		DropBoundThinking bool          `key:"memory.drop_bound_thinking" reload:"yes" default:"false" doc:"after memory forget removed a block, let Anthropic's API drop the thinking bound to it instead of rejecting the request: adds thinking.block_binding and a beta header"`
		Consent           string        `key:"memory.consent" usual:"yes" default:"false" kind:"consent" doc:"the address of memory.endpoint, embedding.url or distil.url, if conversations may be sent there; true means the address in the same source"`
		Timeout           time.Duration `key:"memory.timeout" reload:"yes" default:"30s" min:"1ms" doc:"maximum time for one call to the memory, other than recall"`
		Retain            time.Duration `key:"memory.retain" default:"0s" min:"0s" doc:"age at which messages, and facts that only they support, are deleted here, not in Graphiti; 0 keeps them"`
		LocalFor          time.Duration `key:"memory.local_for" reload:"yes" default:"10m" min:"0s" doc:"without effect: delivered turns are searched here as long as memory.retain keeps them"`

		Retention map[string]string `key:"memory.retention" reload:"yes" kind:"name=age" doc:"other ages than memory.retain, by kind, project or person: {facts: 365d, 'user:mira': hold}; see docs/deletion.md"`

		SkipPaths  []string `key:"memory.skip_paths" reload:"yes" doc:"paths of requests without memory; * matches any text"`
		SkipModels []string `key:"memory.skip_models" reload:"yes" doc:"models of requests without memory; * matches any text"`
	}
	Quota struct {
		Person map[string]string `key:"quota.person" reload:"yes" kind:"name=limit" doc:"maximum messages and bytes of one person: {messages: 20000, bytes: 50MiB}; further messages are not stored. {tokens: 20000} limits the tokens for facts per day (UTC)"`
		Tenant map[string]string `key:"quota.tenant" reload:"yes" kind:"name=limit" doc:"likewise for one credential with all the people that it names"`
		All    map[string]string `key:"quota.all" reload:"yes" kind:"name=limit" doc:"likewise for everything; {disk: 20GiB} limits the databases"`
	}
	Workspace struct {
		Trusted     []string `key:"workspace.trusted" reload:"yes" doc:"the only workspaces with memory, by key (github_repo:github.com/acme/*) or directory (/home/me/src/*); empty allows all, and requests without a project"`
		Ignored     []string `key:"workspace.ignored" reload:"yes" doc:"workspaces without memory; a file .graphiti-proxy-ignore in a workspace has the same effect"`
		RemotePaths bool     `key:"workspace.remote_paths" reload:"yes" default:"false" doc:"true makes a directory on another machine a project, identified by its path, which must be unique; see docs/privacy.md"`
		Optional    bool     `key:"workspace.optional" reload:"yes" default:"false" doc:"true gives your own memory to a client that offers tools without naming a directory; see docs/privacy.md"`
		Clones      []string `key:"workspace.clones" reload:"yes" doc:"directories (/home/me/src/*) with a trusted git remote; see docs/privacy.md"`
	}
	Recall struct {
		Enabled       bool          `key:"recall.enabled" reload:"yes" default:"true" doc:"insert memories into requests"`
		Timeout       time.Duration `key:"recall.timeout" reload:"yes" default:"400ms" min:"1ms" max:"1m" doc:"maximum delay of a request by recall; the default is 800ms if the memory is a service"`
		MaxFacts      int           `key:"recall.max_facts" reload:"yes" default:"12" min:"1" max:"100" doc:"maximum facts in a block; the words of one person on one day count as one fact"`
		MaxChars      int           `key:"recall.max_chars" reload:"yes" default:"2500" min:"200" max:"100000" doc:"maximum characters of a conversation's first block; later ones get two fifths of it, or 1000 if that is more"`
		Scopes        []string      `key:"recall.scopes" reload:"yes" default:"auto" kind:"auto, or some of session, workspace, user, agent" doc:"scopes to search"`
		AlsoGroups    []string      `key:"recall.also_groups" reload:"yes" doc:"Graphiti groups of other clients to search, such as 'opencode-{directory}__main'; see docs/graphiti.md"`
		Query         string        `key:"recall.query" default:"search" kind:"one of search, get-memory" doc:"call for a search of Graphiti's REST service: search, or get-memory with messages"`
		StickyTTL     time.Duration `key:"recall.sticky_ttl" default:"30d" min:"1h" doc:"how long inserted blocks are repeated"`
		MinScore      float64       `key:"recall.min_score" reload:"yes" default:"0.18" min:"0" max:"1" doc:"strength that the best result must reach before a block is inserted; 0 always inserts; see docs/recall.md"`
		Meaning       bool          `key:"recall.meaning" default:"true" doc:"search by meaning, too; false searches by words only"`
		CardChars     int           `key:"recall.card_chars" reload:"yes" default:"400" min:"0" max:"4000" doc:"maximum characters of a conversation's card; 0 disables it; see docs/recall.md"`
		ResumeWithin  time.Duration `key:"recall.resume_within" reload:"yes" default:"7d" min:"0s" doc:"maximum age of the last conversation in a project that a new one shows in a line; 0 disables it"`
		Wait          bool          `key:"recall.wait" reload:"yes" default:"true" doc:"false never waits for Graphiti's answer about a group of recall.also_groups"`
		ContextShare  float64       `key:"recall.context_share" reload:"yes" default:"0.05" min:"0" max:"1" doc:"maximum share of the model's context window for a block, within recall.max_chars; 0 disables it"`
		ContextWindow int           `key:"recall.context_window" reload:"yes" default:"32000" min:"1000" max:"100000000" doc:"context window, in tokens, of models unknown to the proxy"`
		Compaction    bool          `key:"recall.compaction" reload:"yes" default:"true" doc:"add memories when a client has its history summarized"`
		StaleAfter    time.Duration `key:"recall.stale_after" reload:"yes" default:"30d" min:"1h" doc:"facts older than this show their age"`
	}
	Ingest struct {
		Enabled         bool          `key:"ingest.enabled" reload:"yes" default:"true" doc:"store finished turns"`
		Scopes          []string      `key:"ingest.scopes" reload:"yes" default:"auto" kind:"auto, or some of session, workspace, user, agent" doc:"scopes that store turns"`
		Episodes        string        `key:"ingest.episodes" reload:"yes" default:"turn" kind:"one of turn, message" doc:"episodes for Graphiti: turn sends both sides as one message, message one per side, for about twice the model calls"`
		MaxMessageChars int           `key:"ingest.max_message_chars" reload:"yes" default:"8000" min:"100" max:"1000000" doc:"maximum characters of a stored message; longer ones lose their middle"`
		StallAfter      time.Duration `key:"ingest.stall_after" reload:"yes" default:"5m" min:"1s" doc:"silence after which Graphiti's worker counts as dead, and delivery pauses until it recovers"`
		BackfillTurns   int           `key:"ingest.backfill_turns" reload:"yes" default:"10" min:"0" max:"1000" doc:"maximum turns to store from a history new to the proxy, newest first"`
		Ownership       bool          `key:"ingest.ownership" reload:"yes" default:"false" doc:"write the owner and the subject of each group into it once"`
		IdleFlush       time.Duration `key:"ingest.idle_flush" default:"2m" min:"1s" max:"24h" doc:"silence after which an unfinished tool loop is stored"`
		GitMetadata     bool          `key:"ingest.git_metadata" reload:"yes" default:"false" doc:"store the branch, and commit and uncommitted changes if the client sends them"`
		Work            bool          `key:"ingest.work" reload:"yes" default:"true" doc:"store the work of agents, from their tool calls; see docs/work.md"`
	}
	Embedding struct {
		URL    string `key:"embedding.url" kind:"url" doc:"endpoint with OpenAI's embeddings API, in place of the models in the program; needs memory.consent"`
		Model  string `key:"embedding.model" default:"text-embedding-3-small" doc:"name of the embedding model"`
		APIKey string `key:"embedding.api_key" reload:"yes" secret:"yes" doc:"bearer token for embedding.url"`
	}
	Distil struct {
		URL         string        `key:"distil.url" usual:"yes" kind:"url" doc:"endpoint with OpenAI's Chat Completions API, such as http://127.0.0.1:11434/v1, that distils facts from quiet conversations; needs distil.model and memory.consent"`
		Upstream    bool          `key:"distil.upstream" default:"false" doc:"instead of distil.url, ask distil.model at the provider of the person's latest request, with that request's API key"`
		Model       string        `key:"distil.model" usual:"yes" doc:"name of the model that distils facts"`
		APIKey      string        `key:"distil.api_key" reload:"yes" secret:"yes" doc:"bearer token for distil.url"`
		After       time.Duration `key:"distil.after" reload:"yes" default:"10m" min:"1s" doc:"silence before a conversation is sent to the model, unless it has 4,000 new characters"`
		DailyTokens int           `key:"distil.daily_tokens" reload:"yes" default:"200000" min:"0" doc:"maximum tokens for facts per day (UTC)"`
		Pause       bool          `key:"distil.pause" reload:"yes" default:"false" doc:"true sends no conversations to the model; they wait"`
	}
	Identity struct {
		Mode         string   `key:"identity.mode" default:"single" kind:"one of single, multi" doc:"single: one person's machine; multi: every credential is its own tenant"`
		Owner        string   `key:"identity.owner" doc:"the person in single mode, such as github_login:octocat; default: random, kept in data_dir"`
		UsersFile    string   `key:"identity.users_file" reload:"yes" doc:"the registry of people, a YAML file; read again on SIGHUP"`
		TrustedKeys  []string `key:"identity.trusted_keys" reload:"yes" secret:"yes" doc:"credentials, or their sha256:<hex>, of trusted gateways, which may name the person"`
		BodyUsers    bool     `key:"identity.body_users" reload:"yes" default:"false" doc:"accept the person of a trusted gateway, or in single mode of any client, also from the body and ?userId=; the gateway's callers must not set them"`
		OpenWebUI    string   `key:"identity.openwebui_jwt_secret" reload:"yes" secret:"yes" doc:"Open WebUI's FORWARD_USER_INFO_HEADER_JWT_SECRET, for the signed header X-OpenWebUI-User-Jwt; if empty, requests with that header have no memory"`
		GroupIDs     string   `key:"identity.group_ids" default:"canonical" kind:"one of canonical, raw" doc:"canonical: hashed, shared with other Graphiti clients; raw: readable"`
		WorkspaceIDs string   `key:"identity.workspace_ids" default:"canonical" kind:"one of canonical, raw" doc:"raw makes an X-Graphiti-Workspace that is a valid group ID name that group, which other clients may share; other workspaces follow identity.group_ids"`
	}
	State struct {
		Backend     string `key:"state.backend" default:"sqlite" kind:"one of sqlite, postgres" doc:"storage of memory, inserted blocks and sessions: files in data_dir, or a Postgres that several replicas share"`
		PostgresURL string `key:"state.postgres_url" secret:"yes" doc:"for state.backend postgres: postgres://user:password@host:5432/database, with ?sslmode=verify-full for TLS; see docs/replicas.md"`
	}
	Backup struct {
		Every time.Duration `key:"backup.every" reload:"yes" default:"0s" min:"0s" doc:"interval of backups of data_dir; 0 writes none; see docs/backup.md"`
		Keep  int           `key:"backup.keep" reload:"yes" default:"7" min:"1" max:"10000" doc:"number of scheduled backups to keep"`
		Dir   string        `key:"backup.dir" reload:"yes" doc:"directory of scheduled backups; default: backups in data_dir"`
	}
	TLS struct {
		Cert      string   `key:"tls.cert" doc:"PEM file with the certificate and its intermediate certificates; reloaded when it changes"`
		Key       string   `key:"tls.key" doc:"file with the certificate's private key"`
		Listeners []string `key:"tls.listeners" default:"client" kind:"auto, or some of client, admin" doc:"listeners that use TLS if a certificate is set; auto means both"`
	}
	Promote struct {
		Remember   bool `key:"promote.remember" reload:"yes" default:"true" doc:"obey a person's request to remember or forget, such as 'Remember that we use Postgres'"`
		Directives bool `key:"promote.directives" reload:"yes" default:"false" doc:"store lines such as 'preference: tabs, not spaces' in a person's message with that kind"`
	}
	Limits struct {
		InspectBytes  int           `key:"limits.inspect_bytes" reload:"yes" default:"16MiB" kind:"size" min:"1KiB" max:"1GiB" doc:"larger request bodies are forwarded without memory"`
		InspectTotal  int           `key:"limits.inspect_total" reload:"yes" default:"0" kind:"size" min:"0" doc:"maximum bytes of all requests and answers under inspection; further requests have no memory. 0 means a quarter of the memory limit (GOMEMLIMIT or the cgroup's), else of the machine's memory, at most 1GiB"`
		Messages      int           `key:"limits.messages" reload:"yes" default:"20000" min:"1" max:"1000000" doc:"maximum messages in a request; larger requests are forwarded without memory"`
		Requests      int           `key:"limits.requests_per_minute" reload:"yes" default:"0" min:"0" doc:"maximum requests of a proven person, or else of a credential, in a minute, at all replicas; 0 means no limit"`
		Tokens        int           `key:"limits.tokens_per_minute" reload:"yes" default:"0" min:"0" doc:"likewise for input and output tokens that providers report; the tokens of an answer delay later requests"`
		HeaderBytes   int           `key:"limits.header_bytes" default:"64KiB" kind:"size" min:"4KiB" max:"1MiB" doc:"maximum size of a request's head"`
		HeaderTimeout time.Duration `key:"limits.header_timeout" default:"10s" min:"100ms" doc:"maximum time for a request's head to arrive"`
		IdleTimeout   time.Duration `key:"limits.idle_timeout" default:"2m" min:"1s" doc:"maximum time between two requests of a connection"`
		BodyTimeout   time.Duration `key:"limits.body_timeout" default:"30s" min:"100ms" doc:"maximum silence of a client within a request's body before a 408"`
		Connections   int           `key:"limits.connections" default:"16384" min:"1" max:"1000000" doc:"maximum client connections; further ones get 503"`
		PerAddress    int           `key:"limits.connections_per_address" default:"0" min:"0" max:"1000000" doc:"maximum client connections from one address (IPv6: one /64). 0 means all, or half of limits.connections in identity.mode multi; after a gateway or load balancer, raise it"`
	}
	Log struct {
		Level    string `key:"log.level" reload:"yes" default:"info" kind:"one of debug, info, warn, error" doc:"lowest level to log; logs never contain conversation text or credentials"`
		Requests bool   `key:"log.requests" reload:"yes" default:"true" doc:"log each request at info, without texts"`
		Format   string `key:"log.format" default:"auto" kind:"one of auto, text, json" doc:"auto: text on a terminal, else json"`
	}
	Cost struct {
		Prices string `key:"cost.prices" reload:"yes" doc:"a JSON file with prices of models in the format of LiteLLM's model_prices_and_context_window.json"`
	}
	Proof struct {
		Share  float64 `key:"proof" default:"0" min:"0" max:"0.9" doc:"share of conversations from which proof mode withholds memory; 0 disables it; see docs/proof.md"`
		Number int     `key:"proof.conversations" default:"278" min:"20" max:"1000000" doc:"conversations that proof mode compares; another number or share begins a new comparison"`
	}
	Observe struct {
		People string `key:"observe.people" reload:"yes" default:"name" kind:"one of name, hash" doc:"people in logs of requests, traces and the page Live; audit lines always have names"`
	}
	OTel struct {
		Endpoint string  `key:"otel.endpoint" kind:"url" doc:"OpenTelemetry collector for OTLP over HTTP, e.g. http://127.0.0.1:4318; if empty, OTEL_EXPORTER_OTLP_ENDPOINT applies"`
		Traces   bool    `key:"otel.traces" default:"true" doc:"export spans to the collector"`
		Metrics  bool    `key:"otel.metrics" default:"true" doc:"export metrics to the collector"`
		Sample   float64 `key:"otel.sample" default:"1" min:"0" max:"1" doc:"share of requests to trace if the client does not decide; OTEL_TRACES_SAMPLER overrides it"`
	}
	ShutdownGrace time.Duration `key:"shutdown_grace" reload:"yes" default:"30s" min:"0s" doc:"maximum time for running streams to finish after SIGTERM"`

	file       string
	consentFor consented
	notes      []string
	origins    map[string]string
	secrets    []string
}

// consented are the addresses in the source that says memory.consent: true.
type consented struct{ memory, embedding, distil string }

// Consented reports whether conversations may be sent to memory.endpoint, or to
// embedding.url if the memory is embedded.
func (c *Config) Consented() bool {
	if c.RemoteMemory() {
		return c.consents(c.Memory.Endpoint, c.consentFor.memory)
	}
	return c.consents(c.Embedding.URL, c.consentFor.embedding)
}

// DistilConsented reports whether conversations may be sent to distil.url, or back to their
// providers.
func (c *Config) DistilConsented() bool {
	return c.Distil.Upstream || c.consents(c.Distil.URL, c.consentFor.distil)
}

// consents reports whether consent covers an address. beside is the address that the value
// true refers to.
func (c *Config) consents(address, beside string) bool {
	switch c.Memory.Consent {
	case "", "false":
		return false
	case "true":
		return sameAddress(address, beside)
	}
	return sameAddress(address, c.Memory.Consent)
}

func sameAddress(a, b string) bool {
	return a != "" && strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}

// ConsentFor returns another endpoint that consent was given for, or "".
func (c *Config) ConsentFor() string {
	switch {
	case c.Consented() || c.Memory.Consent == "false":
		return ""
	case c.Memory.Consent == "true":
		return c.consentFor.memory
	}
	return c.Memory.Consent
}

// HoldAge is the age of a hold in Ages.
const HoldAge time.Duration = -1

// Ages returns memory.retention, by the key of a project or person, or by kind.
func (c *Config) Ages() map[string]time.Duration {
	ages := make(map[string]time.Duration, len(c.Memory.Retention))
	for key, age := range c.Memory.Retention {
		if ages[key] = HoldAge; age != "hold" {
			ages[key], _ = parseDuration(age) // checked when it was read
		}
	}
	return ages
}

// Limit returns a limit of a quota, or 0 without one.
func Limit(quota map[string]string, name string) int64 {
	n, _ := parseSize(quota[name]) // checked when it was read
	return int64(n)
}

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

// SecretFiles returns the files of secrets.
func (c *Config) SecretFiles() []string { return c.secrets }

// Origin returns the place where a key's value was set.
func (c *Config) Origin(key string) string { return c.origins[key] }
