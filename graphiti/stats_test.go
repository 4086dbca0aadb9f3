package graphiti

import (
	"context"
	"testing"
)

func TestStats(t *testing.T) {
	e, ctx := openEmbedded(t), context.Background()
	empty, err := e.Stats(ctx)
	if err != nil || empty.Groups != 0 || empty.Messages != 0 || empty.Bytes == 0 {
		t.Errorf("empty: %+v, %v", empty, err)
	}
	tell(t, e, "g", "1", "hello", "yes")
	tell(t, e, "h", "2", "hello", "yes")
	if err := e.Forget(ctx, "h"); err != nil {
		t.Fatal(err)
	}
	got, err := e.Stats(ctx)
	if err != nil || got.Groups != 1 || got.Messages != 2 || got.Bytes%512 != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
