package service

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Receipt is the signed record of a deletion. It has no text.
type Receipt struct {
	Version  int    `json:"receipt"` // of this form
	Time     string `json:"time"`
	Owner    string `json:"owner,omitempty"` // key of the person
	Group    string `json:"group"`
	Session  string `json:"session,omitempty"` // hash of the only deleted conversation
	Messages int    `json:"messages"`          // deleted from the memory, with the facts from them
	Queue    int    `json:"queue"`             // turns deleted from the queue
	Blocks   int    `json:"blocks"`            // emptied blocks
	Graphiti string `json:"graphiti"`
	Backups  string `json:"backups"`

	Key       string `json:"key"`       // public key of the data directory
	Signature string `json:"signature"` // Ed25519, of the receipt without this field
}

// receiptKey returns the key that signs the receipts of a data directory with this secret.
func receiptKey(secret []byte) ed25519.PrivateKey {
	m := hmac.New(sha256.New, secret)
	_, _ = m.Write([]byte("graphiti-proxy.receipt.1")) // never fails
	return ed25519.NewKeyFromSeed(m.Sum(nil))
}

// ReceiptKey returns the public key for receipts of a data directory with this secret, or "".
func ReceiptKey(secret []byte) string {
	if len(secret) == 0 {
		return ""
	}
	return base64.StdEncoding.EncodeToString(receiptKey(secret)[ed25519.PublicKeySize:])
}

// signed returns the bytes that a signature covers.
func (r Receipt) signed() []byte {
	r.Signature = ""
	b, _ := json.Marshal(r) // strings and numbers only
	return b
}

// Check returns an error unless the key signed the receipt.
func (r *Receipt) Check(key string) error {
	public, err := base64.StdEncoding.DecodeString(key)
	signature, bad := base64.StdEncoding.DecodeString(r.Signature)
	switch {
	case err != nil || len(public) != ed25519.PublicKeySize:
		return errors.New("this is not a public key for receipts")
	case r.Key != key:
		return fmt.Errorf("another key signed it: %.60q", r.Key)
	case bad != nil || !ed25519.Verify(public, r.signed(), signature):
		return errors.New("its signature does not match: it was changed after it was signed")
	}
	return nil
}

// beginReceipt returns the counts before a deletion, for its receipt. It is nil without a secret.
func (sv *Service) beginReceipt(ctx context.Context, part ledger.Part) (r *Receipt, err error) {
	if sv.o.Secret == nil {
		return nil, nil //nolint:nilnil // no receipt
	}
	r = &Receipt{Version: 1, Owner: part.Owner, Group: part.Group}
	if part.Session != "" {
		r.Session = graphiti.SessionHash(part.Session)
	} else if _, r.Queue, err = sv.o.Pipeline.Turns(ctx, ledger.ListOptions{Group: part.Group, Limit: 1}); err != nil {
		return nil, err
	}
	if r.Owner == "" {
		known, err := sv.o.Pipeline.Owned(ctx, "")
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(known, func(o ledger.Owned) bool { return o.Group == part.Group }); i >= 0 {
			r.Owner = known[i].Owner
		}
	}
	for _, err := range sv.rows(ctx, part, graphiti.Filter{}) {
		if err != nil {
			return nil, err
		}
		r.Messages++
	}
	return r, nil
}

// sign completes the receipt of a deletion.
func (r *Receipt) sign(f *Forgotten, secret []byte, graph bool) {
	r.Time, r.Blocks = momentOf(time.Now()), f.Blocks
	switch {
	case !graph:
		r.Graphiti = "not connected"
	case f.Remaining != "":
		r.Graphiti = "not deleted yet, the proxy retries"
	case f.NamesKept:
		r.Graphiti = "deleted, names and summaries of entities may remain"
	default:
		r.Graphiti = "deleted"
	}
	r.Backups = "not deleted from earlier backups and exports"
	r.Key = ReceiptKey(secret)
	r.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(receiptKey(secret), r.signed()))
}
