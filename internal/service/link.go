package service

import (
	"context"
	"time"
)

// Link leads to the pages of the admin side.
type Link struct {
	Path  string    `json:"path"`
	Until time.Time `json:"until"`
}

// MakeLink makes a link with which a person sees their own memory in the pages.
var MakeLink = Operation[Selector, Link]{
	Spec: Spec{Name: "memory/link", About: "A link to the pages with which a person sees and changes their own memory for fifteen minutes", People: true,
		Without: []string{"agent", "workspace", "session", "own", "group", "message"}},
	Run: func(ctx context.Context, h *Host, in *Selector) (made Link, err error) {
		if h.Link == nil {
			return made, invalid("a link needs a running proxy: graphiti-proxy serve")
		}
		r, err := h.Memory.belongings(ctx, Selector{User: in.User, Credential: in.Credential})
		if err != nil {
			return made, err
		}
		return h.Link(Caller{Name: r.User + r.Credential + ", by a link", Own: Selector{User: r.User, Credential: r.Credential}}), nil
	},
	Audit: func(in *Selector, _ *Link) Entry { return in.audit("link", nil) },
}

// endedLogin begins the key of a login that has ended, among the snapshots of sessions.
const endedLogin = "ended login "

// EndLogin ends a login to the pages, at all replicas.
func (sv *Service) EndLogin(ctx context.Context, id string) error {
	return sv.o.State.Snapshots.Save(ctx, endedLogin+id, []byte{1}, 0)
}

// LoginEnded reports whether a login was ended. It reports false if the store cannot be read: an
// operator needs the pages then.
func (sv *Service) LoginEnded(ctx context.Context, id string) bool {
	ended, _ := sv.o.State.Snapshots.Load(ctx, endedLogin+id)
	return ended != nil
}
