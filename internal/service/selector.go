package service

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Selector selects a memory, or a part of it. It has at least one field.
type Selector struct {
	User       string `json:"user,omitempty" help:"a person, with all their memory: me, josh, github_login:octocat, discord:123"`
	Agent      string `json:"agent,omitempty" help:"one agent's memory of the person"`
	Workspace  string `json:"workspace,omitempty" help:"a project: its directory, such as ., the URL of its git remote, or its key, such as github_repo:github.com/org/repo"`
	Session    string `json:"session,omitempty" help:"a conversation, by its client's id or its id from memory list"`
	Group      string `json:"group,omitempty" help:"one group, by its id"`
	Credential string `json:"credential,omitempty" help:"sha256:<hex> of a credential, in identity.mode multi; separate several credentials of one client with commas"`

	// Own adds the person's own memory to a workspace.
	Own bool `json:"own,omitempty"`

	// Message is a message ID, or those of copies, for forget, correct, restore and conversation.
	Message string `json:"message,omitempty"`

	unshared bool // the caller is no operator, so groups with other owners are omitted
}

// In returns the selector of a group of the selector, or of the session's part of it: see
// checkOne.
func (s Selector) In(group string) Selector {
	if s.Session == "" {
		return Selector{Group: group}
	}
	return Selector{Group: group, Session: s.Session, User: s.User, Credential: s.Credential}
}

// check rejects an invalid group, and own without a workspace.
func (s Selector) check() error {
	if s.Message != "" {
		return invalid("message: an id selects only a message to forget or correct")
	}
	if s.Own && (s.Workspace == "" || s.Session+s.Agent+s.Group != "") {
		return invalid("own: adds a person's own memory to a workspace; name a workspace, and no session, agent or group")
	}
	if s.Group == "" {
		return nil
	}
	if err := graphiti.CheckGroup(s.Group); err != nil {
		return InvalidError{err}
	}
	return nil
}

// checkOne rejects selectors of anything but one group, or a session in it.
func (s Selector) checkOne() error {
	if s.Group == "" || s.Own || s.Agent != "" || s.Workspace != "" || s.Session == "" && (s.User != "" || s.Credential != "") {
		return invalid("name one group, and for a session in it the session and its person; POST /api/v1/memory/groups lists them")
	}
	return s.check()
}

// InvalidError means that the input is invalid.
type InvalidError struct{ error }

func (e InvalidError) Unwrap() error { return e.error }

func invalid(text string) error { return InvalidError{errors.New(text)} }

// meant returns the caller of a selector. The default is the owner of single mode.
func (sv *Service) meant(s Selector) (graphiti.Who, error) {
	who, err := sv.who(s)
	if err == nil && who.User == "" && !sv.o.Multi {
		who.User = sv.o.Owner
	}
	if err == nil && s.Own && who.User == "" {
		err = errNobody
	}
	return who, err
}

// asked returns the caller of a selector, and the owner of their turns, or "" for any owner.
func (sv *Service) asked(s Selector) (who graphiti.Who, owner string, err error) {
	who, err = sv.who(s)
	if s.User != "" || s.Credential != "" {
		owner = who.Owner()
	}
	if err == nil && s.Session != "" && owner == "" && s.Group == "" && sv.o.Multi {
		err = errors.New("session: several people may use the same id; name its person with user or credential")
	}
	return who, owner, err
}

// who returns the caller of a selector.
func (sv *Service) who(s Selector) (w graphiti.Who, err error) {
	multi := sv.o.Multi
	read := func(what, value string, key func(string) (string, bool), to *string) {
		if value == "" {
			return
		}
		k, ok := key(value)
		if !ok {
			err = errors.Join(err, fmt.Errorf("%s: %q is not valid", what, value))
		}
		*to = k
	}
	if s.User == me && !multi {
		s.User = sv.o.Owner
	}
	read("user", s.User, graphiti.UserKey, &w.User)
	read("agent", s.Agent, graphiti.BareName, &w.Agent)
	read("workspace", s.Workspace, graphiti.WorkspaceKey, &w.Workspace)
	read("session", s.Session, graphiti.NamedSession, &w.Session)
	w.User = sv.o.People.Resolve(w.User)
	switch upstream, fingerprints, ok := readFingerprints(s.Credential); {
	case s.Credential != "" && (!ok || !multi):
		err = errors.Join(err, errors.New("credential: write sha256: and 64 hex digits, separated by commas, with <name>/ before them for a named upstream; it needs identity.mode multi"))
	case s.Credential != "":
		w.SetCredentials(upstream, fingerprints...)
		if w.User == "" {
			w.User = "user:credential"
		}
	case multi && w.User != "":
		w.SetPerson()
	case !multi && w.User == "" && w.Agent != "":
		w.User = sv.o.Owner
	}
	return w, err
}

// readFingerprints parses sha256:<hex>, or several with commas, after an optional upstream name
// and a slash.
func readFingerprints(list string) (upstream string, fingerprints []string, ok bool) {
	if name, rest, named := strings.Cut(list, "/"); named {
		upstream, list = strings.TrimSpace(name), rest
	}
	for one := range strings.SplitSeq(list, ",") {
		digits, hashed := strings.CutPrefix(strings.TrimSpace(one), "sha256:")
		if _, err := hex.DecodeString(digits); err != nil || !hashed || len(digits) != 64 {
			return "", nil, false
		}
		fingerprints = append(fingerprints, strings.ToLower(digits))
	}
	return upstream, fingerprints, true
}

func (sv *Service) targets(s Selector) ([]graphiti.Target, error) {
	if s.Group != "" {
		return []graphiti.Target{{Group: s.Group}}, nil
	}
	who, err := sv.meant(s)
	if err != nil {
		return nil, err
	}
	reads := sv.namer().Reads(who, true)
	if len(reads) == 0 {
		return nil, errNobody
	}
	return reads, nil
}

// errNobody means that a selector has no owner.
var errNobody = errors.New("name a memory with user, agent, workspace, session, group or credential")

func narrowest(s Selector) graphiti.Scope {
	switch {
	case s.Session != "":
		return graphiti.ScopeSession
	case s.Workspace != "":
		return graphiti.ScopeWorkspace
	case s.Agent != "":
		return graphiti.ScopeAgent
	}
	return graphiti.ScopeUser
}

// scopes are the scopes for manual texts.
var scopes = []graphiti.Scope{graphiti.ScopeUser, graphiti.ScopeWorkspace, graphiti.ScopeSession, graphiti.ScopeAgent}

// target returns the group of a scope, or by default of the most durable one.
func (sv *Service) target(s Selector, scope string) (graphiti.Target, graphiti.Who, error) {
	who, err := sv.meant(s)
	if err != nil {
		return graphiti.Target{}, who, err
	}
	if named := s; scope == "" && s.Group == "" {
		if s.Workspace != "" {
			named.Session = ""
		}
		scope = string(narrowest(named))
	}
	sc := graphiti.Scope(cmp.Or(scope, string(graphiti.ScopeUser)))
	if !slices.Contains(scopes, sc) {
		return graphiti.Target{}, who, fmt.Errorf("scope: unknown scope %q; write user, workspace, session or agent", scope)
	}
	if s.Group != "" {
		if err := graphiti.CheckGroup(s.Group); err != nil {
			return graphiti.Target{}, who, err
		}
		if scope == "" {
			var ok bool
			if sc, ok = graphiti.ScopeOf(s.Group); !ok {
				return graphiti.Target{}, who, errors.New("scope: the group's id does not contain it; write user, workspace, session or agent next to the group")
			}
		}
		return graphiti.Target{Scope: sc, Group: s.Group}, who, nil
	}
	g, ok := sv.namer().Group(sc, who)
	if !ok {
		return graphiti.Target{}, who, fmt.Errorf("scope: needs a %s; name one, or choose another scope", sc)
	}
	return graphiti.Target{Scope: sc, Group: g}, who, nil
}
