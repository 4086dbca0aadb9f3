package observe_test

import (
	"fmt"
	"log"
	"log/slog"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
)

// A message counts with its latest fate only.
func ExampleObserver_Message() {
	o, err := observe.New(noop.NewMeterProvider().Meter(""), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		log.Fatal(err)
	}
	o.Message("codex", graphiti.FateNone, graphiti.Fate{Name: graphiti.FateOpen})
	o.Message("codex", graphiti.FateOpen, graphiti.Fate{Name: graphiti.FateStored})
	n := o.Messages()
	fmt.Println(n[graphiti.FateOpen], n[graphiti.FateStored])
	// Output: 0 1
}
