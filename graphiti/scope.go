package graphiti

// Scope says whose memory something is.
type Scope string

// The scopes, from the shortest lived to the most durable.
const (
	ScopeSession   Scope = "session"   // one conversation
	ScopeWorkspace Scope = "workspace" // a repository or project
	ScopeUser      Scope = "user"      // a person
	ScopeAgent     Scope = "agent"     // one agent's view of one person
	ScopeSystem    Scope = "system"    // a bot without a person
)

// Who is the caller of one request: canonical keys, empty where unknown.
type Who struct {
	Tenant      string // fingerprint of the credential in multi mode, else empty
	User        string // github_login:<login>, user:<id> or user:<platform>:<id>
	Session     string // session:<id>
	Workspace   string // github_repo:<host>/<org>/<repo> or path:<absolute path>
	Agent       string // the agent's bare name
	SystemActor string // the actor's bare name
}

// Target is a scope and the group that holds it.
type Target struct {
	Scope Scope
	Group string
}
