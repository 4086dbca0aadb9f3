package proof_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
)

type records map[string][]byte

func (r records) Load(_ context.Context, key string) ([]byte, error) { return r[key], nil }

func (r records) Save(_ context.Context, key string, body []byte, _ int64, _ ...string) error {
	r[key] = body
	return nil
}

func (r records) Each(context.Context, func(string, []byte) error, ...string) error { return nil }

// An experiment with a share of 1 withholds memory from each conversation that has had none yet.
func ExampleProof_Withholds() {
	p := proof.Open(records{}, proof.Terms{Share: 1, Number: 10, Secret: []byte("key")}, slog.New(slog.DiscardHandler))
	defer p.Close()
	ctx := context.Background()
	fmt.Println(p.Withholds(ctx, &proof.Talk{Session: "new"}, false, false), p.Withholds(ctx, &proof.Talk{Session: "old"}, true, false))
	// Output: true false
}
