package capture

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Twin is a message that two requests may have: a program asks about the message of a turn, with
// another system prompt.
type Twin struct {
	Of          dialect.Fingerprint // its caller
	Text, Whole []byte              // letters and digits of the words, and of the whole message
	Prompt      uint64              // hash of the system prompt
	Form, Tools bool                // the request asks for a data format, or offers tools
	Session     string              // that the request names; "" if it names none
}

// begunTurn is a turn that has begun.
type begunTurn struct {
	Twin
	at     time.Time
	stored bool
}

// quotes reports whether a message holds the words of another one, with another prompt. A message
// with a session of its own is about no other, and neither is one that only begins like it.
func (t *Twin) quotes(o *Twin) bool {
	words := o.Text
	if o.Tools {
		words = words[:min(len(words), minQuoted)]
	}
	isOwn := t.Session != "" && t.Session != o.Session ||
		bytes.HasPrefix(t.Text, words) && !bytes.HasPrefix(t.Text, o.Text) && !bytes.HasPrefix(o.Text, t.Text)
	return t.Of == o.Of && !isOwn && t.Prompt != o.Prompt && len(words) > 0 && bytes.Contains(t.Whole, words)
}

// isPair reports whether one of two held turns is about the other.
func (r *heldRef) isPair(o *heldRef) bool {
	return !o.drop && (r.Twin.quotes(&o.Twin) || o.Twin.quotes(&r.Twin))
}

// yields reports whether a turn is about another one, as far as the requests show it: programs
// ask for data, quote the message, or come first.
func (r *heldRef) yields(o *heldRef) bool {
	switch {
	case !r.isPair(o):
		return false
	case r.Twin.Form != o.Twin.Form:
		return r.Twin.Form
	case len(r.Twin.Text) != len(o.Twin.Text):
		return len(r.Twin.Text) > len(o.Twin.Text)
	}
	return r.at.Before(o.at)
}

// isAboutOpen reports whether a message is a program's about a turn that has begun.
func (d *doubts) isAboutOpen(t *Twin) bool {
	return slices.ContainsFunc(d.begun, func(b begunTurn) bool { return !b.stored && (t.Form || !b.Form) && t.quotes(&b.Twin) })
}

// isAbout reports whether a message is a program's about a stored turn of the last minute: the
// turn is an agent's, or has the same words.
func (d *doubts) isAbout(t *Twin) bool {
	return slices.ContainsFunc(d.begun, func(b begunTurn) bool {
		return b.stored && time.Since(b.at) < pairFor && t.quotes(&b.Twin) && (b.Tools || bytes.Equal(b.Text, t.Text))
	})
}

// Twin reports a turn that has begun or is stored: held turns that are about it wait for its
// end, or are dropped. It does not wait.
func (p *Pipeline) Twin(t *Twin, stored bool) {
	d := &p.doubts
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.refs {
		if r.Twin.quotes(t) {
			r.drop, r.until = r.drop || stored, time.Now().Add(holdFor)
		}
	}
	d.begun = slices.DeleteFunc(d.begun, func(b begunTurn) bool {
		return b.Of == t.Of && b.Prompt == t.Prompt && bytes.Equal(b.Text, t.Text)
	})
	d.begun = append(d.begun[max(0, len(d.begun)-maxBegun+1):], begunTurn{*t, time.Now(), stored})
	d.settle()
}

// Release ends the holds of a caller's earlier messages when another message arrives: the requests
// of a pair follow each other at once. It waits until they are recorded, but not longer than ctx.
func (p *Pipeline) Release(ctx context.Context, t *Twin) {
	d := &p.doubts
	d.mu.Lock()
	now, found := time.Now(), false
	for _, r := range d.refs {
		if r.Reason == graphiti.HeldTwin && r.Twin.Of == t.Of && len(r.Twin.Whole) > 0 && !r.isPair(&heldRef{Doubt: Doubt{Twin: *t}}) && !bytes.Equal(r.Twin.Text, t.Text) && !d.isAboutOpen(&r.Twin) {
			r.until, found = now, true
		}
	}
	d.mu.Unlock()
	if !found {
		return
	}
	ended := make(chan struct{})
	select {
	case d.passes <- ended:
	case <-p.stopped.Done():
		return
	case <-ctx.Done():
		d.settle()
		return
	}
	select {
	case <-ended:
	case <-p.stopped.Done():
	case <-ctx.Done():
	}
}
